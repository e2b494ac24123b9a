// The hash covers what a graph computes and nothing else.
#include <torch/torch.h>

#include <set>

#include "graph/build.h"

using namespace tandem;
using namespace tandem::test;

namespace {

using Change = std::function<void(Graph&)>;

std::string hash_after(const Change& change) {
  Graph graph = small_graph();
  change(graph);
  return graph.hash();
}

std::string hash_with_constant(at::Tensor data) {
  Graph graph = small_graph();
  TensorMeta meta = dense(data.sizes().vec(), -1, data.scalar_type());
  meta.strides = Dims(data.strides());
  graph.add_constant(meta, std::move(data));
  return graph.hash();
}

Change alpha(c10::IValue value) {
  return [value](Graph& g) { g.nodes()[0].arguments[2] = value; };
}

Change first_meta(std::function<void(TensorMeta&)> change) {
  return [change](Graph& g) { change(g.meta(g.inputs()[0])); };
}

}  // namespace

TEST(Hash, is_the_same_in_every_process) {
  EXPECT_EQ(small_graph().hash(), "2027fb98923f21613bbd6269eecf24b7d4a8122fc49bf3aa6da6b1955488eca0");
}

TEST(Hash, changes_with_everything_that_is_computed) {
  const double tiny = 5e-324;
  const std::vector<Change> changes = {
      [](Graph&) {},
      alpha(2),
      alpha(1.0),
      alpha(0.0),
      alpha(-0.0),
      alpha(tiny),
      alpha(true),
      alpha(c10::complex<double>(1, 0)),
      alpha(c10::complex<double>(0, 1)),
      alpha("1"),
      alpha(c10::Device("cpu")),
      alpha(c10::Device("cuda:0")),
      alpha(c10::IValue()),
      alpha(std::vector<int64_t>{1}),
      alpha(std::vector<int64_t>{1, 1}),
      alpha(std::vector<int64_t>{}),
      alpha(number(1)),
      alpha(number(1.0)),
      [](Graph& g) { g.nodes()[0].arguments[1] = number(1.0); },
      [](Graph& g) { std::swap(g.nodes()[0].arguments[0], g.nodes()[0].arguments[1]); },
      [](Graph& g) { g.nodes()[0].arguments[1] = Value{}; },
      [](Graph& g) { g.nodes()[0].arguments[1] = std::vector<Value>{Value{1}}; },
      [](Graph& g) { g.nodes()[0].op = op("aten::sub.Tensor"); },
      [](Graph& g) { g.nodes()[0].op = op("aten::add.Scalar"); },
      [](Graph& g) { g.nodes()[0].phase = Phase::Backward; },
      [](Graph& g) { g.nodes()[0].writes = {{Value{0}, Value{0}}}; },
      [](Graph& g) { g.nodes().pop_back(); },
      [](Graph& g) { std::swap(g.nodes()[0], g.nodes()[1]); },
      [](Graph& g) { g.set_outputs({Value{3}}); },
      [](Graph& g) { g.set_outputs({Value{}, Value{3}}); },
      [](Graph& g) { g.set_outputs({Value{2}, Value{}}); },
      [](Graph& g) { g.set_inputs({Value{0}}); },
      [](Graph& g) { g.add_input(dense({1})); },
      first_meta([](TensorMeta& m) { m.dtype = at::kDouble; }),
      first_meta([](TensorMeta& m) { m.device = c10::Device("cuda:0"); }),
      first_meta([](TensorMeta& m) { m.device = c10::Device("cuda:1"); }),
      first_meta([](TensorMeta& m) { m.sizes = {4, 3}; }),
      first_meta([](TensorMeta& m) { m.strides = {1, 3}; }),
      first_meta([](TensorMeta& m) { m.offset = 1; }),
      first_meta([](TensorMeta& m) { m.storage = 1; }),
      first_meta([](TensorMeta& m) { m.storage = -1; }),
      first_meta([](TensorMeta& m) { m.requires_grad = true; }),
      first_meta([](TensorMeta& m) { m.conj = true; }),
      first_meta([](TensorMeta& m) { m.neg = true; }),
  };
  std::set<std::string> hashes;
  for (size_t i = 0; i < changes.size(); ++i)
    EXPECT_TRUE(hashes.insert(hash_after(changes[i])).second) << "change " << i;
}

TEST(Hash, covers_the_bytes_of_constants) {
  std::set<std::string> hashes;
  at::Tensor wrapped = number(1.0).toTensor();
  for (const at::Tensor& data :
       {at::tensor({1.f, 2.f}), at::tensor({1.f, 3.f}), at::tensor({0.f, 1.f}), at::tensor({-0.f, 1.f}),
        at::tensor({1.0, 2.0}), at::tensor({1.f, 2.f}).view({2, 1}),
        at::tensor({1.f, 9.f, 2.f}).slice(0, 0, 3, 2), wrapped, at::tensor(1.0)})
    EXPECT_TRUE(hashes.insert(hash_with_constant(data)).second) << data;
  EXPECT_EQ(hash_with_constant(at::tensor({1.f, 9.f, 2.f}).slice(0, 0, 3, 2)),
            hash_with_constant(at::tensor({1.f, 8.f, 2.f}).slice(0, 0, 3, 2)))
      << "what lies between the elements is not part of it";
}

TEST(Hash, leaves_out_names_locations_and_numbering) {
  const std::string plain = small_graph().hash();
  EXPECT_EQ(plain, hash_after([](Graph& g) { g.set_name(Value{0}, "another"); }));
  EXPECT_EQ(plain, hash_after([](Graph& g) { g.nodes()[1].location = "elsewhere.cpp:9"; }));
  EXPECT_EQ(plain, hash_after([](Graph& g) { g.add_value(dense({9})); }));
  EXPECT_EQ(plain, hash_after([](Graph& g) {
              for (int id = 0; id < 4; ++id) g.meta(Value{id}).storage += 7;
            }));

  Graph shifted;
  shifted.add_value(dense({5}));
  for (int id = 0; id < 4; ++id) shifted.add_value(small_graph().meta(Value{id}));
  auto shift = [](Value v) { return Value{v.id + 1}; };
  shifted.set_inputs({Value{1}, Value{2}});
  const Graph original = small_graph();
  for (Node node : original.nodes()) {
    for (Operand& o : node.arguments) map_values(o, shift);
    for (Operand& o : node.results) map_values(o, shift);
    shifted.add_node(std::move(node));
  }
  shifted.set_outputs({Value{4}, Value{}});
  EXPECT_EQ(plain, shifted.hash());
}
