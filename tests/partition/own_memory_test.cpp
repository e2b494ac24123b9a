#include "partition/own_memory.h"

#include "passes/graphs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <tandem/error.h>

namespace tandem {
namespace {

/// Adds 1 to two tensors by one list operator, and returns the first, a view of it, and what was given.
struct Lists {
  GraphWriter w;
  Value kept = w.input({2, 3}), other = w.input({2, 3});

  void add_to(Value first, Value second) {
    Node node{find_op("aten::_foreach_add_.Scalar")};
    node.arguments = {std::vector<Value>{first, second}, number(int64_t(1))};
    for (Value target : {first, second}) {
      TensorMeta meta = w.graph.meta(target);
      node.writes.emplace_back(target, w.graph.add_value(std::move(meta)));
    }
    const Value written = node.writes[0].second;
    w.graph.add_node(std::move(node));
    w.graph.set_outputs({written, w.call("aten::t", {written}), kept});
  }
};

void expect_that_inputs_stay(const Graph& graph) {
  const at::Tensor kept = at::zeros({2, 3}, at::kDouble), other = at::full({2, 3}, 5, at::kDouble);
  const Tensors outputs = graph.run({kept.clone(), other});
  EXPECT_TRUE(at::equal(outputs[2], kept));
  EXPECT_TRUE(at::equal(outputs[0], outputs[1].t()));
  EXPECT_FALSE(at::equal(outputs[0], kept));
}

TEST(OwnMemory, OfAValueThatIsMadeAgainBesideOneThatIsKept) {
  Lists lists;
  const Value first = lists.w.call("aten::clone", {lists.other, c10::IValue()}),
              second = lists.w.call("aten::clone", {lists.other, c10::IValue()});
  lists.w.graph.meta(first).storage = lists.w.graph.meta(lists.kept).storage;
  lists.add_to(first, second);
  EXPECT_THROW(lists.w.graph.verify(), Error);
  const Graph graph = with_own_memory(lists.w.graph);
  graph.verify();
  expect_that_inputs_stay(graph);
  EXPECT_EQ(graph.meta(graph.outputs()[0]).storage, graph.meta(graph.outputs()[1]).storage);
  EXPECT_NE(graph.meta(graph.outputs()[0]).storage, graph.meta(lists.kept).storage);
}

TEST(OwnMemory, OfACopyWhereWhatIsWrittenIsKeptItself) {
  Lists lists;
  lists.add_to(lists.kept, lists.w.call("aten::clone", {lists.other, c10::IValue()}));
  EXPECT_THROW(lists.w.graph.verify(), Error);
  const Graph graph = with_own_memory(lists.w.graph);
  graph.verify();
  expect_that_inputs_stay(graph);
}

}  // namespace
}  // namespace tandem
