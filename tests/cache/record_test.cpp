// An entry read back is the entry that was written, and bytes that are none are refused.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "cache/sample_entry.h"
#include "graph/uses.h"
#include "graph/wire.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::cache;

namespace {

void expect_kept(const Graph& graph) {
  SCOPED_TRACE(graph.to_string());
  const std::string bytes = encode_graph(graph);
  const Graph read = decode_graph(bytes);
  expect_equal(graph, read);
  EXPECT_EQ(graph.fresh_storage(), read.fresh_storage());
  EXPECT_EQ(graph.hash(), read.hash());
  EXPECT_EQ(bytes, encode_graph(read));
}

void expect_kept(const StoredOrder& order, const StoredOrder& read) {
  EXPECT_EQ(order.joint.bytes, read.joint.bytes);
  expect_equal(without_unused_metas(order.halves.forward), read.halves.forward);
  expect_equal(without_unused_metas(order.halves.backward), read.halves.backward);
  EXPECT_EQ(order.halves.saved, read.halves.saved);
  EXPECT_EQ(order.artifact, read.artifact);
  EXPECT_EQ(order.marked, read.marked);
  EXPECT_EQ(order.returned, read.returned);
  EXPECT_EQ(order.expected, read.expected);
  EXPECT_EQ(order.has_expected, read.has_expected);
  EXPECT_EQ(order.variant, read.variant);
  EXPECT_EQ(order.taken, read.taken);
  EXPECT_EQ(order.gradients, read.gradients);
  EXPECT_EQ(order.differentiable, read.differentiable);
  ASSERT_EQ(order.backwards.size(), read.backwards.size());
  for (size_t i = 0; i < order.backwards.size(); ++i) {
    EXPECT_EQ(order.backwards[i].variant, read.backwards[i].variant);
    EXPECT_EQ(order.backwards[i].saved, read.backwards[i].saved);
    EXPECT_EQ(order.backwards[i].gradients, read.backwards[i].gradients);
    EXPECT_EQ(order.backwards[i].artifact, read.backwards[i].artifact);
    expect_equal(without_unused_metas(order.backwards[i].graph_in(order.halves)),
                 read.backwards[i].graph_in(read.halves));
  }
  ASSERT_EQ(order.above.size(), read.above.size());
  for (size_t i = 0; i < order.above.size(); ++i) expect_kept(order.above[i], read.above[i]);
}

/// What is said about an entry that was changed like this.
template <class Change>
std::string refusal(Change&& change) {
  StoredEntry entry = sample_entry();
  change(entry.first);
  const std::string bytes = encode(entry);
  return complaint_of([&] { decode(bytes); });
}

Graph with_number(const c10::IValue& constant) {
  Graph graph;
  const Value x = graph.add_input(dense({2}));
  graph.set_outputs({call(graph, "aten::mul.Scalar", {x, constant}, dense({2}))});
  return graph;
}

Graph with_data(const at::Tensor& data) {
  Graph graph;
  TensorMeta meta;
  meta.dtype = data.scalar_type();
  meta.sizes.assign(data.sizes().begin(), data.sizes().end());
  meta.strides.assign(data.strides().begin(), data.strides().end());
  meta.conj = data.is_conj();
  meta.neg = data.is_neg();
  graph.set_outputs({graph.add_constant(meta, data)});
  return graph;
}

}  // namespace

TEST(Record, keeps_every_part_of_an_entry) {
  const StoredEntry entry = sample_entry(), read = decode(encode(entry));
  ASSERT_EQ(read.components.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(entry.components[i].name, read.components[i].name);
    EXPECT_EQ(entry.components[i].hash, read.components[i].hash);
    EXPECT_EQ(entry.components[i].text, read.components[i].text);
  }
  EXPECT_EQ(entry.contract, read.contract);
  EXPECT_EQ(entry.options, read.options);
  EXPECT_EQ(entry.backend, read.backend);
  EXPECT_EQ(entry.backend_version, read.backend_version);
  EXPECT_EQ(entry.machine, read.machine);
  EXPECT_EQ(entry.nodes_recorded, read.nodes_recorded);
  EXPECT_EQ(entry.eager_saved_bytes, read.eager_saved_bytes);
  EXPECT_EQ(entry.reads_offsets, read.reads_offsets);
  EXPECT_EQ(entry.trace_seconds, read.trace_seconds);
  EXPECT_EQ(entry.forward_seconds, read.forward_seconds);
  EXPECT_EQ(entry.backward_seconds, read.backward_seconds);
  expect_kept(entry.first, read.first);
  EXPECT_EQ(encode(read), encode(entry));
}

TEST(Record, joint_stays_bytes_until_it_is_asked_for) {
  StoredEntry entry = sample_entry();
  const Joint joint = sample_joint(), read = unpack(decode(encode(entry)).first.joint);
  expect_equal(joint.graph, read.graph);
  EXPECT_EQ(read.primals, 2u);
  EXPECT_EQ(read.forward_outputs, 1u);
  entry.first.joint.bytes = "nonsense";
  const StoredEntry damaged = decode(encode(entry));
  EXPECT_NE(complaint_of([&] { unpack(damaged.first.joint); }), "");
  for (auto change : {+[](Joint& j) { j.primals = 4; }, +[](Joint& j) { j.forward_outputs = 4; }}) {
    Joint wrong = joint;
    change(wrong);
    EXPECT_NE(complaint_of([&] { unpack(pack(wrong)); }).find("fewer inputs or outputs"), std::string::npos);
  }
}

TEST(Record, expected_backward_is_written_once) {
  StoredEntry entry = sample_entry();
  const StoredEntry read = decode(encode(entry));
  EXPECT_FALSE(read.first.backwards[0].graph) << "nor is it read twice";
  EXPECT_TRUE(read.first.backwards[1].graph);
  const size_t with_it = encode(entry).size();
  entry.first.backwards.erase(entry.first.backwards.begin());
  EXPECT_LT(with_it - encode(entry).size(), encode_graph(entry.first.halves.backward).size());
}

TEST(GraphBytes, keep_ids_names_places_and_gaps) {
  expect_kept(Graph());
  expect_kept(small_graph());
  expect_kept(sample_joint().graph);
  expect_kept(sample_of_constants());
}

TEST(GraphBytes, keep_every_part_of_a_meta) {
  Graph graph;
  TensorMeta meta = dense({3, 1, 0, 4, 1, 1});
  graph.add_input(meta);
  meta.strides = {1, 7, 3, 5, 0, std::numeric_limits<int64_t>::max()};
  meta.offset = 9;
  meta.storage = 12;
  meta.requires_grad = meta.conj = meta.neg = true;
  meta.device = c10::Device(c10::kCUDA, 1);
  graph.add_input(meta);
  meta.device = c10::Device(c10::kCPU, 0);
  for (int only = 0; only < 3; ++only) {
    meta.requires_grad = only == 0;
    meta.conj = only == 1;
    meta.neg = only == 2;
    graph.add_input(meta);
  }
  for (int dtype = 0; dtype < int(at::ScalarType::Undefined); ++dtype)
    graph.add_input(dense({}, -1, at::ScalarType(dtype)));
  expect_kept(graph);
}

TEST(GraphBytes, keep_numbers_to_the_bit) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (double value : {0.0, -0.0, 0.1, infinity, -infinity, std::nan(""), -std::nan("7"),
                       std::numeric_limits<double>::denorm_min()}) {
    expect_kept(with_number(value));
    expect_kept(with_number(c10::complex<double>(value, -1)));
  }
  for (int64_t value : {int64_t(0), int64_t(-1), int64_t(63), int64_t(64), int64_t(-65),
                        std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})
    expect_kept(with_number(value));
  for (bool value : {false, true}) expect_kept(with_number(value));
  expect_kept(with_number(at::Scalar(std::numeric_limits<uint64_t>::max())));
}

TEST(GraphBytes, keep_lists_with_their_element_type) {
  auto keep = [](const std::string& name, std::vector<Operand> arguments) {
    Graph graph;
    const Value x = graph.add_input(dense({1, 1, 4, 4}));
    arguments[0] = x;
    graph.set_outputs({call(graph, name, std::move(arguments), dense({1, 1, 8, 8}))});
    expect_kept(graph);
  };
  using c10::IValue;
  keep("aten::upsample_nearest2d.vec", {Operand(), IValue(), IValue(std::vector<double>{2.0, 2.0})});
  keep("aten::upsample_nearest2d.vec", {Operand(), IValue(std::vector<int64_t>{8, 8}), IValue()});
  keep("aten::sum.dim_IntList", {Operand(), IValue(std::vector<int64_t>{}), IValue(false), IValue()});
  Graph graph;
  const Value x = graph.add_input(dense({2, 2}));
  Node node{op("aten::_foreach_add.ScalarList"),
            {std::vector<Value>{x}, IValue(c10::List<at::Scalar>({at::Scalar(1), at::Scalar(2.5)}))},
            {std::vector<Value>{graph.add_value(dense({2, 2}))}},
            {},
            Phase::Forward,
            {}};
  graph.add_node(std::move(node));
  expect_kept(graph);
  Graph masks;
  const Value g = masks.add_input(dense({2, 2}));
  std::vector<Operand> results;
  for (int i = 0; i < 3; ++i) results.push_back(masks.add_value(dense({2})));
  masks.add_node(Node{op("aten::native_layer_norm_backward"),
                      {g, g, IValue(std::vector<int64_t>{2}), g, g, Value{}, Value{},
                       IValue(c10::List<bool>({true, false, true}))},
                      results,
                      {},
                      Phase::Forward,
                      {}});
  expect_kept(masks);
}

TEST(GraphBytes, keep_constant_tensors_with_their_geometry) {
  const at::Tensor plain = at::arange(24, at::kFloat).view({2, 3, 4});
  expect_kept(with_data(plain));
  expect_kept(with_data(plain.transpose(0, 2)));
  expect_kept(with_data(at::ones({1}).expand({3, 4})));
  expect_kept(with_data(at::empty({0, 5})));
  expect_kept(with_data(at::tensor({1, 0}, at::kLong).to(at::kBool)));
  expect_kept(with_data(at::scalar_tensor(3, at::kBFloat16)));
  expect_kept(with_data(at::complex(plain, plain).conj()));
  expect_kept(with_data(plain._neg_view()));
  expect_kept(with_data(number(7).toTensor()));
  expect_kept(with_data(plain[1]));  // it lies behind the beginning of its memory, and need not
}

TEST(GraphBytes, refuse_to_keep_what_has_no_bytes) {
  Graph graph;
  graph.set_outputs({call(
      graph, "aten::rand.generator",
      {c10::IValue(std::vector<int64_t>{2}), c10::IValue(at::globalContext().defaultGenerator(c10::kCPU)),
       c10::IValue(), c10::IValue(), c10::IValue(), c10::IValue()},
      dense({2}))});
  graph.nodes().back().location = "model.cpp:7";
  EXPECT_EQ(complaint_of([&] { encode_graph(graph); }),
            "a call of aten::rand.generator at model.cpp:7 cannot be kept: an argument of type Generator has "
            "no stable bytes");
  EXPECT_EQ(complaint_of([&] { encode_graph(with_data(at::ones({4, 4}).select(1, 0))); }),
            "a constant tensor has gaps between its elements; make it contiguous");
  StoredEntry entry = sample_entry();
  for (const char* name :
       {"0", "../../etc/passwd", "ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789"}) {
    entry.first.artifact = name;
    EXPECT_NE(complaint_of([&] { encode(entry); }).find("not named after a SHA-256"), std::string::npos);
  }
}

TEST(Record, refuses_every_truncation_and_anything_behind_the_end) {
  const std::string bytes = encode(sample_entry());
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_NE(complaint_of([&] { decode(bytes.substr(0, size)); }), "") << size;
  EXPECT_NE(complaint_of([&] { decode(bytes + '\0'); }).find("behind the end"), std::string::npos);
}

TEST(Record, refuses_another_format) {
  std::string bytes = encode(sample_entry());
  ++bytes[0];
  EXPECT_NE(complaint_of([&] { decode(bytes); }).find("another format"), std::string::npos);
}

TEST(Record, refuses_positions_outside_of_what_they_point_into) {
  struct Case {
    const char* complaint;
    void (*change)(StoredOrder& order);
  };
  const Case cases[] = {
      {"no value", [](StoredOrder& o) { o.halves.saved[0].id = 1000; }},
      {"no saved value 3", [](StoredOrder& o) { o.marked = {3}; }},
      {"returns 2 and saves", [](StoredOrder& o) { o.returned = 2; }},
      {"returns 18446744073709551615 and saves", [](StoredOrder& o) { o.returned = size_t(-1); }},
      {"saves a value that is not there",
       [](StoredOrder& o) {
         o.halves.forward.set_outputs({o.halves.forward.outputs()[0], Value{}, Value{}, Value{}});
       }},
      {"than are saved and arrive", [](StoredOrder& o) { o.expected.tangents[0].reset(); }},
      {"no saved value 0", [](StoredOrder& o) { o.taken = {0}; }},
      {"no result 1", [](StoredOrder& o) { o.differentiable = {1}; }},
      {"another number of inputs", [](StoredOrder& o) { o.gradients = {0}; }},
      {"no saved value 3", [](StoredOrder& o) { o.backwards[0].saved[1] = 3; }},
      {"than it is given", [](StoredOrder& o) { o.backwards[0].saved.pop_back(); }},
      {"a result that is not there", [](StoredOrder& o) { o.backwards[0].gradients[1] = 2; }},
      {"a result that is not there", [](StoredOrder& o) { o.backwards[0].gradients[1] = -2; }},
      {"a result that is not there", [](StoredOrder& o) { o.backwards[1].gradients[1] = 2; }},
      {"another number of inputs", [](StoredOrder& o) { o.backwards[0].gradients.push_back(-1); }},
      {"other outputs or inputs than the forward",
       [](StoredOrder& o) { o.backwards[1].variant.wanted.push_back(true); }},
      {"other outputs or inputs than the forward",
       [](StoredOrder& o) { o.backwards[1].variant.tangents.clear(); }},
      {"two backwards have the graph", [](StoredOrder& o) { o.backwards.push_back(o.backwards[0]); }},
      {"no saved value 3", [](StoredOrder& o) { o.above[0].taken[0] = 3; }},
      {"than it is given", [](StoredOrder& o) { o.above[0].taken.pop_back(); }},
      {"no result 2", [](StoredOrder& o) { o.above[0].differentiable[1] = 2; }},
      {"a result that is not there", [](StoredOrder& o) { o.above[0].gradients[0] = 2; }},
      {"than the order below has",
       [](StoredOrder& o) { o.above[0].variant.tangents.push_back(std::nullopt); }},
  };
  for (const Case& c : cases)
    EXPECT_NE(refusal(c.change).find(c.complaint), std::string::npos)
        << c.complaint << " / " << refusal(c.change);
}

TEST(Record, refuses_a_result_with_a_history_that_is_not_there) {
  EXPECT_NE(refusal([](StoredOrder& o) {
              o.above[0].halves.forward.set_outputs({o.above[0].halves.forward.outputs()[0], Value{}});
              o.above[0].gradients = {-1, -1};
            }).find("a result that is not there has a history"),
            std::string::npos);
}

TEST(Record, refuses_orders_without_end) {
  auto tower = [](int height) {
    return [height](StoredOrder& order) {
      order = StoredOrder();
      order.artifact = std::string(64, '1');
      for (int i = 1; i < height; ++i) {
        StoredOrder below;
        below.artifact = order.artifact;
        below.above.push_back(std::move(order));
        order = std::move(below);
      }
    };
  };
  EXPECT_EQ(refusal(tower(16)), "");
  EXPECT_NE(refusal(tower(17)).find("a higher order than 16"), std::string::npos);
}

TEST(Record, refuses_durations_that_are_none) {
  for (double seconds : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    StoredEntry entry = sample_entry();
    entry.forward_seconds = seconds;
    EXPECT_NE(complaint_of([&] { decode(encode(entry)); }).find("no number of seconds"), std::string::npos);
  }
}

TEST(GraphBytes, refuse_graphs_that_make_no_sense) {
  auto refused = [](auto&& change) {
    Graph graph = sample_of_constants();
    change(graph);
    const std::string bytes = encode_graph(graph);
    return complaint_of([&] { decode_graph(bytes); });
  };
  EXPECT_NE(refused([](Graph& g) { g.nodes()[0].arguments[0] = Value{1000}; }).find("there is no value"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) {
              std::swap(g.nodes()[0], g.nodes()[1]);
            }).find("which nothing before it defines"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) { g.nodes()[0].arguments.pop_back(); }).find("arguments, its schema has"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) {
              g.nodes()[1].arguments[2] = c10::IValue("yes");
            }).find("where the schema has bool"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) {
              g.nodes()[1].arguments[3] = c10::IValue(1000);
            }).find("'dtype' of aten::sum.dim_IntList is 1000, which means nothing"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) { g.meta(Value{3}).sizes = {-1, 2}; }).find("negative size"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) {
              g.meta(Value{5}).sizes = {int64_t(1) << 40, int64_t(1) << 40};
            }).find("larger than any memory"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) {
              g.meta(Value{5}).offset = std::numeric_limits<int64_t>::max();
            }).find("larger than any memory"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) {
              g.meta(Value{5}).storage = std::numeric_limits<int32_t>::max();
            }).find("no storage"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) { g.meta(Value{5}).dtype = at::ScalarType::Undefined; }).find("no dtype"),
            std::string::npos);
  EXPECT_NE(refused([](Graph& g) {
              g.meta(Value{5}).sizes.resize(65, 1);
              g.meta(Value{5}).strides.resize(65, 1);
            }).find("65 dimensions"),
            std::string::npos);
}

TEST(GraphBytes, refuse_an_operator_that_is_not_registered) {
  std::string bytes = encode_graph(small_graph());
  bytes.replace(bytes.find("aten::relu"), 10, "aten::rely");
  EXPECT_NE(complaint_of([&] { decode_graph(bytes); }).find("there is no operator \"aten::rely\""),
            std::string::npos);
}

TEST(GraphBytes, refuse_counts_that_the_bytes_cannot_hold) {
  for (size_t before = 0; before < 6; ++before) {
    ByteWriter writer;
    for (size_t i = 0; i < before; ++i) writer.number(0);
    writer.number(uint64_t(1) << 60);
    const std::string bytes = writer.take();
    EXPECT_NE(complaint_of([&] { decode_graph(bytes); }).find("too short for 1152921504606846976 items"),
              std::string::npos)
        << before;
  }
}

TEST(GraphBytes, refuse_lists_that_do_not_hold_what_they_say) {
  auto refused = [](const c10::IValue& list) {
    Graph graph;
    graph.set_outputs(
        {call(graph, "aten::sum.dim_IntList",
              {graph.add_input(dense({2})), list, c10::IValue(false), c10::IValue()}, dense({}))});
    const std::string bytes = encode_graph(graph);
    return complaint_of([&] { decode_graph(bytes); });
  };
  c10::impl::GenericList of_integers(c10::IntType::get());
  of_integers.push_back(c10::IValue(0.5));
  EXPECT_NE(refused(of_integers).find("a list of int holds something else"), std::string::npos);
  c10::IValue nested = 1;
  for (int i = 0; i < 12; ++i) {
    c10::impl::GenericList list(c10::AnyType::get());
    list.push_back(nested);
    nested = list;
  }
  EXPECT_NE(refused(nested).find("nested more than 8 deep"), std::string::npos);
}

TEST(GraphBytes, refuse_booleans_that_are_none) {
  std::string bytes = encode_graph(with_data(at::ones({2}, at::kBool)));
  const size_t elements = bytes.find(std::string("\2\1\1\0", 4));  // two of them, and no node behind them
  ASSERT_NE(elements, std::string::npos);
  bytes[elements + 1] = 2;
  EXPECT_NE(complaint_of([&] { decode_graph(bytes); }).find("neither true nor false"), std::string::npos);
}

TEST(GraphBytes, refuse_names_in_disorder) {
  Graph graph;
  graph.add_input(dense({}), "first");
  graph.add_input(dense({}), "other");
  std::string bytes = encode_graph(graph);
  std::swap(bytes[bytes.find("first") - 2], bytes[bytes.find("other") - 2]);
  EXPECT_NE(complaint_of([&] { decode_graph(bytes); }).find("in disorder"), std::string::npos);
}

TEST(Record, refuses_tensors_that_cannot_be_where_no_call_reads_them) {
  EXPECT_NE(refusal([](StoredOrder& o) { o.expected.tangents[0]->sizes = {-1, 2}; }).find("negative size"),
            std::string::npos);
  EXPECT_NE(refusal([](StoredOrder& o) {
              const Value unread = o.halves.forward.add_input(TensorMeta());
              o.halves.forward.meta(unread).offset = -1;
            }).find("negative offset"),
            std::string::npos);
}
