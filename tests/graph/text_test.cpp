// A graph printed and read back is the same graph, and a text that is none is refused with its line.
#include <tandem/build.h>
#include <torch/torch.h>

#include "graph/build.h"

using namespace tandem;
using namespace tandem::test;

namespace {

void expect_round_trip(const Graph& graph) {
  const std::string text = graph.to_string();
  SCOPED_TRACE(text);
  Graph read = Graph::parse(text);
  expect_equal(graph, read);
  EXPECT_EQ(text, read.to_string());
  EXPECT_EQ(graph.hash(), read.hash());
}

/// A graph whose only call has `constant` as its argument number `position`, the others being none.
Graph with_constant(const std::string& name, size_t position, Operand constant) {
  Graph graph;
  Value x = graph.add_input(dense({2}));
  Node node{op(name), {}, {}, {}, Phase::Forward, {}};
  for (size_t i = 0; i < node.op.schema().arguments().size(); ++i) {
    const bool tensor = node.op.schema().arguments()[i].type()->kind() == c10::TypeKind::TensorType;
    node.arguments.push_back(i == position ? constant : tensor ? Operand(x) : Operand(c10::IValue()));
  }
  for (size_t i = 0; i < node.op.schema().returns().size(); ++i)
    node.results.push_back(graph.add_value(dense({2})));
  graph.add_node(std::move(node));
  return graph;
}

std::string refusal(const std::string& text) {
  return complaint_of([&] { Graph::parse(text); });
}

}  // namespace

TEST(Text, reads_as_documented) {
  EXPECT_EQ(small_graph().to_string(),
            "graph(%x#0: f32[3, 4] storage 0 cpu, %1: f32[3, 4] storage 1 cpu) {\n"
            "  %2: f32[3, 4] storage 2 cpu = aten::add.Tensor(%x#0, %1, alpha=1)\n"
            "  %3: f32[3, 4] storage 3 cpu = aten::relu(%2) [backward] @ \"model.cpp:3\"\n"
            "  return (%3, none)\n"
            "}\n");
}

TEST(Text, round_trip_of_a_small_graph) { expect_round_trip(small_graph()); }
TEST(Text, round_trip_of_an_empty_graph) { expect_round_trip(Graph()); }

TEST(Text, round_trip_of_every_part_of_a_meta) {
  Graph graph;
  TensorMeta meta = dense({3, 1, 0, 4});
  graph.add_input(meta);
  meta.strides = {1, 7, -3, 5};
  meta.offset = 9;
  meta.storage = 12;
  meta.requires_grad = meta.conj = meta.neg = true;
  meta.device = c10::Device(c10::kCUDA, 1);
  graph.add_input(meta);
  meta.requires_grad = meta.conj = false;
  graph.add_input(meta);
  TensorMeta scalar = dense({});
  for (auto dtype :
       {at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort, at::kChar, at::kByte,
        at::kBool, at::kComplexFloat, at::kComplexDouble, at::kComplexHalf, at::kUInt16, at::kUInt32,
        at::kUInt64, at::kFloat8_e5m2, at::kFloat8_e4m3fn, at::kQInt8, at::kFloat8_e4m3fnuz}) {
    scalar.dtype = dtype;
    graph.add_input(scalar);
  }
  expect_round_trip(graph);
}

TEST(Text, round_trip_of_names) {
  Graph graph;
  for (std::string name : {"layer.0.weight", "_x", "with space", "7", "3a",
                           "quote\"back\\slash\nline\x01\xff", "return", "x", "x", "a:b", "constant", "%"})
    graph.add_input(dense({1}), name);
  expect_round_trip(graph);
}

TEST(Text, round_trip_of_scalars) {
  const double infinity = std::numeric_limits<double>::infinity();
  uint64_t odd_nan = 0xfff8000000000123;
  double nan;
  std::memcpy(&nan, &odd_nan, sizeof nan);
  for (double value : {0.0, -0.0, 1.0, -1.0, 0.1, 1e-5, 1e300, 5e-324, 1.7976931348623157e308,
                       123456789012345680.0, infinity, -infinity, std::nan(""), nan, 1.0 / 3})
    expect_round_trip(with_constant("aten::add.Tensor", 2, c10::IValue(value)));
  for (int64_t value : {int64_t(0), int64_t(-1), int64_t(7), std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<int64_t>::max()})
    expect_round_trip(with_constant("aten::add.Tensor", 2, c10::IValue(value)));
  for (bool value : {true, false})
    expect_round_trip(with_constant("aten::add.Tensor", 2, c10::IValue(value)));
  expect_round_trip(with_constant("aten::add.Tensor", 2, c10::IValue(c10::complex<double>(1.5, -0.0))));
  expect_round_trip(
      with_constant("aten::add.Tensor", 2, c10::IValue(c10::complex<double>(-infinity, std::nan("")))));
  expect_round_trip(
      with_constant("aten::add.Tensor", 2, c10::IValue(at::Scalar(uint64_t(18446744073709551615u)))));
}

TEST(Text, round_trip_of_wrapped_numbers) {
  for (const at::Scalar& scalar :
       {at::Scalar(3.5), at::Scalar(-0.0), at::Scalar(std::nan("")),
        at::Scalar(-std::numeric_limits<double>::infinity()), at::Scalar(-4), at::Scalar(true),
        at::Scalar(false), at::Scalar(c10::complex<double>(1, 2))})
    expect_round_trip(with_constant("aten::add.Tensor", 1, number(scalar)));
  Graph graph = with_constant("aten::add.Tensor", 1, number(3.5));
  EXPECT_NE(graph.to_string().find("number(3.5: f64)"), std::string::npos) << graph.to_string();
}

TEST(Text, round_trip_of_strings_devices_and_enumerations) {
  expect_round_trip(with_constant("aten::div.Tensor_mode", 2, c10::IValue("floor \"x\"\\\n\t\x80")));
  expect_round_trip(with_constant("aten::_to_copy", 3, c10::IValue(c10::Device("cuda:1"))));
  expect_round_trip(with_constant("aten::_to_copy", 1, c10::IValue(int64_t(at::kBFloat16))));
  expect_round_trip(with_constant("aten::_to_copy", 1, c10::IValue(int64_t(at::kBool))));
  expect_round_trip(with_constant("aten::_to_copy", 2, c10::IValue(int64_t(at::kSparseCsr))));
  expect_round_trip(with_constant("aten::_to_copy", 6, c10::IValue(int64_t(at::MemoryFormat::ChannelsLast))));
  expect_round_trip(with_constant("aten::_to_copy", 6, c10::IValue(int64_t(99))));
  EXPECT_NE(
      with_constant("aten::_to_copy", 1, c10::IValue(int64_t(at::kBFloat16))).to_string().find("dtype=bf16"),
      std::string::npos);
  EXPECT_NE(with_constant("aten::_to_copy", 6, c10::IValue(int64_t(at::MemoryFormat::ChannelsLast)))
                .to_string()
                .find("memory_format=channels_last"),
            std::string::npos);
}

TEST(Text, round_trip_of_lists) {
  for (std::vector<int64_t> list : {std::vector<int64_t>{}, {1}, {3, -4, 5}})
    expect_round_trip(with_constant("aten::view", 1, c10::IValue(list)));
  expect_round_trip(
      with_constant("aten::upsample_nearest1d.vec", 2, c10::IValue(std::vector<double>{1.0, -0.0})));
  expect_round_trip(with_constant("aten::upsample_nearest1d.vec", 2, c10::IValue(std::vector<double>{})));
  c10::List<bool> mask({true, false, true});
  expect_round_trip(with_constant("aten::convolution_backward", 10, c10::IValue(mask)));
  expect_round_trip(with_constant("aten::convolution_backward", 10, c10::IValue(c10::List<bool>())));
  c10::List<c10::IValue> scalars(c10::AnyType::get());
  scalars.push_back(1);
  scalars.push_back(2.5);
  scalars.push_back(true);
  expect_round_trip(with_constant("aten::_foreach_add.ScalarList", 1, c10::IValue(scalars)));
}

TEST(Text, round_trip_of_tensor_lists_and_nones) {
  Graph graph;
  Value x = graph.add_input(dense({4}), "x"), i = graph.add_input(dense({2}, -1, at::kLong));
  Value a = graph.add_value(dense({2})), b = graph.add_value(dense({2}));
  graph.add_node(Node{op("aten::split.Tensor"),
                      {x, c10::IValue(2), c10::IValue(0)},
                      {std::vector<Value>{a, b}},
                      {},
                      Phase::Forward,
                      {}});
  graph.add_node(Node{op("aten::split.Tensor"),
                      {x, c10::IValue(2), c10::IValue(0)},
                      {std::vector<Value>{}},
                      {},
                      Phase::Forward,
                      {}});
  call(graph, "aten::index.Tensor", {x, std::vector<Value>{Value{}, i}}, dense({2}));
  call(graph, "aten::cat", {std::vector<Value>{}, c10::IValue(0)}, dense({2}));
  call(graph, "aten::cat", {std::vector<Value>{a, b}, c10::IValue(0)}, dense({4}));
  Value n = graph.add_value(dense({4})), m = graph.add_value(dense({1}));
  graph.add_node(Node{op("aten::native_layer_norm"),
                      {x, c10::IValue(std::vector<int64_t>{4}), Value{}, Value{}, c10::IValue(1e-5)},
                      {n, m, Value{}},
                      {},
                      Phase::Backward,
                      {}});
  graph.set_outputs({n, Value{}, n});
  expect_round_trip(graph);
}

TEST(Text, round_trip_of_constant_results) {
  Graph graph;
  Value x = graph.add_input(dense({4}));
  graph.add_node(Node{op("aten::size.int"), {x, c10::IValue(0)}, {c10::IValue(4)}, {}, Phase::Forward, {}});
  graph.add_node(Node{op("aten::_assert_async"), {x}, {}, {}, Phase::Forward, "here \"and\" there:1"});
  expect_round_trip(graph);
}

TEST(Text, round_trip_of_writes) {
  Graph graph;
  Value x = graph.add_input(dense({4}, 0), "x");
  Value c = call(graph, "aten::clone", {x, c10::IValue()}, dense({4}, 1));
  Value a = graph.add_value(dense({4}, 1));
  graph.add_node(Node{op("aten::add_.Tensor"), {c, x, c10::IValue(1)}, {a}, {{c, a}}, Phase::Forward, {}});
  Value stats = graph.add_value(dense({4}, 1)), out = graph.add_value(dense({4})),
        mean = graph.add_value(dense({4})), deviation = graph.add_value(dense({4}));
  graph.add_node(
      Node{op("aten::native_batch_norm"),
           {x, Value{}, Value{}, a, Value{}, c10::IValue(true), c10::IValue(0.1), c10::IValue(1e-5)},
           {out, mean, deviation},
           {{a, stats}},
           Phase::Forward,
           {}});
  graph.add_node(Node{op("aten::copy_"), {x, a, c10::IValue(false)}, {x}, {{x, x}}, Phase::Forward, {}});
  graph.set_outputs({a});
  expect_round_trip(graph);
  EXPECT_NE(graph.to_string().find("writes (%1 -> %2)"), std::string::npos) << graph.to_string();
  EXPECT_NE(graph.to_string().find("writes (%2 -> %3: f32[4] storage 1 cpu)"), std::string::npos)
      << graph.to_string();
}

TEST(Text, round_trip_of_constants) {
  auto meta_of = [](const at::Tensor& tensor) {
    TensorMeta meta;
    meta.dtype = tensor.scalar_type();
    meta.sizes = Dims(tensor.sizes());
    meta.strides = Dims(tensor.strides());
    meta.offset = tensor.storage_offset();
    meta.conj = tensor.is_conj();
    meta.neg = tensor.is_neg();
    return meta;
  };
  Graph graph;
  at::Tensor ramp = at::arange(24, at::kFloat).view({4, 6});
  at::Tensor complex = at::complex(at::tensor({1.0, 2.0}), at::tensor({3.0, -0.0}));
  for (const at::Tensor& data :
       {ramp, ramp.t(), ramp.slice(1, 1, 6, 2), ramp.slice(0, 1, 2).expand({3, 6}), at::empty({0, 3}),
        at::arange(3).gt(1), at::tensor(7), at::tensor({1.5, -0.0}).to(at::kBFloat16), complex,
        complex.conj(), at::imag(complex.conj()), at::tensor({std::numeric_limits<float>::quiet_NaN(), 1.f})})
    graph.add_constant(meta_of(data), data);
  at::Tensor wrapped = number(2.5).toTensor();
  graph.add_constant(meta_of(wrapped), wrapped);
  expect_round_trip(graph);
}

TEST(Text, gaps_between_ids_stay) {
  Graph graph;
  graph.add_value({});
  graph.add_value({});
  graph.add_input(dense({2}));
  Value after = call(graph, "aten::relu", {graph.inputs()[0]}, dense({2}));
  graph.set_outputs({after});
  expect_round_trip(graph);
}

TEST(Text, a_generator_is_shown_and_refused) {
  Graph graph = with_constant("aten::bernoulli", 1, c10::IValue(at::detail::createCPUGenerator()));
  EXPECT_NE(graph.to_string().find("generator=generator(cpu)"), std::string::npos) << graph.to_string();
  EXPECT_NE(refusal(graph.to_string()).find("generator cannot be read back"), std::string::npos);
  expect_round_trip(with_constant("aten::bernoulli", 1, c10::IValue()));
}

TEST(Text, errors_name_the_line_and_what_was_expected) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1: expected \"graph\", found the end"},
      {"grape() {}", "expected \"graph\""},
      {"graph(%0: f32[2] cpu", "expected \")\", found the end"},
      {"graph(%0: f32[2] cpu) {\n  return (%0)\n", "line 3: expected \"}\""},
      {"graph() {\n  return ()\n} more", "line 3: expected the end, found \"more\""},
      {"graph(%0: f99[2] cpu) {", "expected a dtype, found \"f99[2]"},
      {"graph(%0: f32[2,] cpu) {", "expected an integer"},
      {"graph(%0: f32[99999999999999999999] cpu) {", "expected an integer"},
      {"graph(%0: f32[2] toaster) {", "expected a device"},
      {"graph(%0: f32[2] storage 5000000000 cpu) {", "storage 5000000000 is out of range"},
      {"graph(%0: f32[2] storage 2147483647 cpu) {", "storage 2147483647 is out of range"},
      {"graph(%999999999: f32[2] cpu) {", "out of all proportion"},
      {"graph(%-1: f32[2] cpu) {", "out of all proportion"},
      {"graph(%x: f32[2] cpu) {", "expected \"#\""},
      {"graph(%: f32[2] cpu) {", "expected the number of a value"},
      {"graph(%x#0: f32[2] cpu, %y#0: f32[2] cpu) {", "two names"},
      {"graph(%0: f32[2] cpu, %0: f32[3] cpu) {", "described in two ways"},
      {"graph(%\"x", "expected the closing quote"},
      {"graph(%\"x\\q\"#0", "escapes"},
      {"graph(%\"x\\x4", "hexadecimal"},
      {"graph() {\n  aten::no_such_thing()\n  return ()\n}",
       "line 2: there is no operator aten::no_such_thing"},
      {"graph() {\n  %1\n  return ()\n}", "expected \"=\""},
      {"graph() {\n  %1: f32[] cpu = add()\n", "expected an operator"},
      {"graph() {\n  %1: f32[] cpu = aten::relu()\n", "aten::relu is given 0 of 1 arguments"},
      {"graph() {\n  %1: f32[] cpu = aten::relu(%0, %0)\n", "behind the 1 arguments of aten::relu"},
      {"graph() {\n  %1: f32[] cpu = aten::add.Tensor(%0, %0, 1)\n", "expected \"alpha\""},
      {"graph() {\n  %1: f32[] cpu = aten::add.Tensor(%0, %0, alpha=1x)\n", "expected a number"},
      {"graph() {\n  %1: f32[] cpu = aten::add.Tensor(%0, %0, alpha=1e999)\n", "expected a number"},
      {"graph() {\n  %1: f32[] cpu = aten::add.Tensor(%0, %0, alpha=banana)\n", "expected a value of type"},
      {"graph() {\n  %1: f32[] cpu = aten::add.Tensor(%0, %0, alpha=nan(0x", "expected the bits of a nan"},
      {"graph() {\n  %1: f32[] cpu = aten::view(%0, [1, %0])\n", "a constant stands in a list of tensors"},
      {"graph() {\n  %1: f32[] cpu = aten::view(%0, [[[[[[[[[[[[[[[", "nested"},
      {"graph() {\n  %1: f32[] cpu = aten::view(%0, <Storage>)\n", "expected a value"},
      {"graph() {\n  %1: f32[] cpu = aten::add.Tensor(%0, number(1: f64), alpha=1)\n",
       "another dtype than its value"},
      {"graph() {\n  constant %0: f32[2] cpu = 0x00\n", "comes with 1 bytes"},
      {"graph() {\n  constant %0: f32[2] cpu = 0x000\n", "even number"},
      {"graph() {\n  constant %0: f32[2] strides [1000000000000] cpu = 0x0000000000000000\n",
       "strides that reach over"},
      {"graph() {\n  constant %0: f32[4611686018427387904, 4611686018427387904] cpu = 0x00\n",
       "larger than any memory"},
      {"graph() {\n  constant %0: f32[-1] cpu = 0x\n", "negative size"},
      {"graph() {\n  constant %0: f32[1] meta = 0x00000000\n", "meta device"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string said = refusal(text);
    EXPECT_NE(said.find(expected), std::string::npos) << text << "\n said: " << said;
    EXPECT_NE(said.find(" in line "), std::string::npos) << said;
  }
}

TEST(Text, what_is_appended_to_a_graph_that_was_read_lies_in_memory_of_its_own) {
  Graph graph = Graph::parse(small_graph().to_string());
  const Value added = Builder(graph).input({2});
  for (size_t id = 0; id + 1 < graph.value_count(); ++id)
    EXPECT_NE(graph.meta(Value{int32_t(id)}).storage, graph.meta(added).storage) << id;
}

TEST(Text, no_prefix_of_a_text_and_no_changed_byte_does_harm) {
  Graph graph = small_graph();
  graph.add_constant(dense({2}), at::tensor({1.f, 2.f}));
  call(graph, "aten::add.Tensor", {Value{0}, number(2.5), c10::IValue(c10::complex<double>(1, 2))},
       dense({1}));
  const std::string text = graph.to_string();
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_FALSE(refusal(text.substr(0, length)).empty()) << text.substr(0, length);
  for (size_t i = 0; i < text.size(); ++i)
    for (char c : {'\0', '"', '[', '9', '%', '\\', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      try {
        Graph::parse(changed).to_string();
      } catch (const Error&) {
      }
    }
}

TEST(Text, an_excerpt_marks_its_node) {
  Graph graph = small_graph();
  EXPECT_EQ(excerpt(graph, 1, 1),
            "  %2: f32[3, 4] storage 2 cpu = aten::add.Tensor(%x#0, %1, alpha=1)\n"
            "> %3: f32[3, 4] storage 3 cpu = aten::relu(%2) [backward] @ \"model.cpp:3\"\n"
            "  return (%3, none)\n");
  EXPECT_EQ(excerpt(graph, 0, 0), "> %2: f32[3, 4] storage 2 cpu = aten::add.Tensor(%x#0, %1, alpha=1)\n");
}
