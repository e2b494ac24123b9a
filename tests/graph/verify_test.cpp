// verify() lets sound graphs pass and names what is wrong with every other.
#include <torch/torch.h>

#include "graph/build.h"

using namespace tandem;
using namespace tandem::test;

namespace {

std::string verdict(const Graph& graph) {
  return complaint_of([&] { graph.verify(); });
}

void expect_broken(const std::string& expected, const std::function<void(Graph&)>& change) {
  Graph graph = small_graph();
  change(graph);
  EXPECT_NE(verdict(graph).find(expected), std::string::npos)
      << "expected: " << expected << "\n said: " << verdict(graph);
}

Node in_place_add(Value target, Value other, Value result) {
  return {op("aten::add_.Tensor"),
          {target, other, c10::IValue(1)},
          {result},
          {{target, result}},
          Phase::Forward,
          {}};
}

/// x is cloned, the clone is added to in place, the sum is copied back into x.
struct Writing {
  Graph graph;
  Value x = graph.add_input(dense({4}, 0), "x"), y = graph.add_input(dense({4}, 1), "y");
  Value clone = call(graph, "aten::clone", {x, c10::IValue()}, dense({4}, 2));
  Value sum = graph.add_value(dense({4}, 2)), after = graph.add_value(dense({4}, 0));
  Writing() {
    graph.add_node(in_place_add(clone, y, sum));
    graph.add_node(
        Node{op("aten::copy_"), {x, sum, c10::IValue(false)}, {after}, {{x, after}}, Phase::Forward, {}});
    graph.set_outputs({sum});
  }
  Node& addition() { return graph.nodes()[1]; }
};

void expect_bad_write(const std::string& expected, const std::function<void(Writing&)>& change) {
  Writing writing;
  change(writing);
  EXPECT_NE(verdict(writing.graph).find(expected), std::string::npos)
      << "expected: " << expected << "\n said: " << verdict(writing.graph);
}

}  // namespace

TEST(Verify, lets_sound_graphs_pass) {
  EXPECT_EQ(verdict(Graph()), "");
  EXPECT_EQ(verdict(small_graph()), "");
  EXPECT_EQ(verdict(Writing().graph), "");
}

TEST(Verify, shows_the_node_and_its_neighbours) {
  Graph graph = small_graph();
  graph.nodes()[1].arguments.clear();
  const std::string said = verdict(graph);
  EXPECT_NE(said.find("node 1, aten::relu"), std::string::npos) << said;
  EXPECT_NE(said.find("> %3"), std::string::npos) << said;
  EXPECT_NE(said.find("  %2"), std::string::npos) << said;
}

TEST(Verify, values_are_defined_once_and_before_they_are_read) {
  expect_broken("'self' reads %3, which nothing before it defines",
                [](Graph& g) { g.nodes()[0].arguments[0] = Value{3}; });
  expect_broken("reads %2, which nothing before it defines",
                [](Graph& g) { std::swap(g.nodes()[0], g.nodes()[1]); });
  expect_broken("'other' names a value that does not exist",
                [](Graph& g) { g.nodes()[0].arguments[1] = Value{77}; });
  expect_broken("defines %2, which is defined already", [](Graph& g) { g.nodes()[1].results[0] = Value{2}; });
  expect_broken("defines %x, which is defined already", [](Graph& g) { g.nodes()[1].results[0] = Value{0}; });
  expect_broken("a result names a value that does not exist",
                [](Graph& g) { g.nodes()[1].results[0] = Value{77}; });
  expect_broken("an input or a constant twice", [](Graph& g) { g.add_input(Value{0}); });
  expect_broken("input names a value that does not exist", [](Graph& g) { g.add_input(Value{77}); });
  expect_broken("input names a value that does not exist", [](Graph& g) { g.add_input(Value{}); });
  expect_broken("the output %4 is defined by nothing",
                [](Graph& g) { g.set_outputs({g.add_value(dense({1}))}); });
  expect_broken("an output names a value that does not exist", [](Graph& g) { g.set_outputs({Value{77}}); });
}

TEST(Verify, calls_are_as_their_schemas_have_them) {
  expect_broken("given 2 arguments, its schema has 3", [](Graph& g) { g.nodes()[0].arguments.pop_back(); });
  expect_broken("'alpha' is a constant of type String where the schema has Scalar",
                [](Graph& g) { g.nodes()[0].arguments[2] = c10::IValue("one"); });
  expect_broken("'alpha' is a constant of type None",
                [](Graph& g) { g.nodes()[0].arguments[2] = c10::IValue(); });
  expect_broken("'alpha' is a tensor", [](Graph& g) { g.nodes()[0].arguments[2] = Value{1}; });
  expect_broken("'other' is a list of tensors",
                [](Graph& g) { g.nodes()[0].arguments[1] = std::vector<Value>{Value{1}}; });
  expect_broken("'other' is a constant of type Int",
                [](Graph& g) { g.nodes()[0].arguments[1] = c10::IValue(1); });
  expect_broken("'other' is a constant of type Tensor",
                [](Graph& g) { g.nodes()[0].arguments[1] = c10::IValue(at::ones({2})); });
  expect_broken("it has 0 results, its schema returns 1", [](Graph& g) { g.nodes()[1].results.clear(); });
  expect_broken("its result 0 is a list of tensors",
                [](Graph& g) { g.nodes()[1].results[0] = std::vector<Value>{Value{3}}; });
  expect_broken("its result 0 is a constant of type Int",
                [](Graph& g) { g.nodes()[1].results[0] = c10::IValue(3); });
  Graph numbers = small_graph();
  numbers.nodes()[0].arguments[1] = number(2.5);
  EXPECT_EQ(verdict(numbers), "");
}

TEST(Verify, metas_are_sane) {
  expect_broken("%x has 2 sizes and 1 strides", [](Graph& g) { g.meta(Value{0}).strides.pop_back(); });
  expect_broken("%3 has the negative size -1", [](Graph& g) { g.meta(Value{3}).sizes[0] = -1; });
  expect_broken("%3 has the negative stride -1", [](Graph& g) { g.meta(Value{3}).strides[0] = -1; });
  expect_broken("%3 begins at the negative offset -2", [](Graph& g) { g.meta(Value{3}).offset = -2; });
  expect_broken("%3 is larger than any memory",
                [](Graph& g) { g.meta(Value{3}).sizes[0] = int64_t(1) << 62; });
  expect_broken("%3 has no dtype", [](Graph& g) { g.meta(Value{3}).dtype = at::ScalarType::Undefined; });
  expect_broken("the constant %4 has no data", [](Graph& g) { g.add_constant(dense({2}), at::Tensor()); });
  expect_broken("the constant %4 has data of another dtype or size",
                [](Graph& g) { g.add_constant(dense({2}), at::ones({3})); });
  expect_broken("the constant %4 has data of another dtype or size",
                [](Graph& g) { g.add_constant(dense({2}), at::ones({2}, at::kInt)); });
}

TEST(Verify, writes_are_listed) {
  expect_bad_write("writes %2 and does not list it", [](Writing& w) { w.addition().writes.clear(); });
  expect_bad_write("lists a write to %y, which is none of the arguments",
                   [](Writing& w) { w.addition().writes.emplace_back(w.y, w.y); });
  expect_bad_write("writes name a value that does not exist",
                   [](Writing& w) { w.addition().writes[0].second = Value{77}; });
}

TEST(Verify, a_written_value_is_fresh_and_read_by_nothing_else) {
  expect_bad_write("which something else reads",
                   [](Writing& w) { call(w.graph, "aten::relu", {w.clone}, dense({4}, 9)); });
  expect_bad_write("which something else reads", [](Writing& w) { w.addition().arguments[1] = w.clone; });
  expect_bad_write("also an output as it was before", [](Writing& w) { w.graph.set_outputs({w.clone}); });
  expect_bad_write("writes the input %x; only aten::copy_",
                   [](Writing& w) { w.addition() = in_place_add(w.x, w.y, w.sum); });
  expect_bad_write("shares memory with an older value", [](Writing& w) {
    w.graph.nodes()[0].op = op("aten::alias");
    w.graph.nodes()[0].arguments.pop_back();
  });
  expect_bad_write("shares memory with an older value",
                   [](Writing& w) { w.graph.meta(w.clone).storage = 0; });
  expect_bad_write("writes the constant", [](Writing& w) {
    w.addition() = in_place_add(w.graph.add_constant(dense({4}), at::ones({4})), w.y, w.sum);
  });
}

TEST(Verify, one_private_value_may_be_written_again) {
  Writing w;
  Value twice = w.graph.add_value(dense({4}, 2));
  w.graph.nodes().insert(w.graph.nodes().begin() + 2, in_place_add(w.sum, w.y, twice));
  w.graph.nodes()[3].arguments[1] = twice;
  w.graph.set_outputs({twice});
  EXPECT_EQ(verdict(w.graph), "");
}

TEST(Verify, nobody_reads_an_input_after_it_was_copied_into) {
  expect_bad_write("writes the input %x, which is read afterwards",
                   [](Writing& w) { call(w.graph, "aten::relu", {w.x}, dense({4}, 9)); });
  expect_bad_write("which shares its memory, is read afterwards", [](Writing& w) {
    Value view = w.graph.add_value(dense({4}, 0));
    w.graph.nodes().insert(w.graph.nodes().begin(),
                           Node{op("aten::alias"), {w.x}, {view}, {}, Phase::Forward, {}});
    call(w.graph, "aten::relu", {view}, dense({4}, 9));
  });
  expect_bad_write("also an output as it was before", [](Writing& w) { w.graph.set_outputs({w.x}); });

  Writing reads_new_value;
  call(reads_new_value.graph, "aten::relu", {reads_new_value.after}, dense({4}, 9));
  EXPECT_EQ(verdict(reads_new_value.graph), "");
  Writing shared;
  shared.graph.meta(shared.y).storage = 0;
  Value after = shared.graph.add_value(dense({4}, 0));
  shared.graph.add_node(Node{op("aten::copy_"),
                             {shared.y, shared.sum, c10::IValue(false)},
                             {after},
                             {{shared.y, after}},
                             Phase::Forward,
                             {}});
  EXPECT_EQ(verdict(shared.graph), "");
}

TEST(Verify, hidden_writes_may_be_listed_or_not) {
  Graph graph;
  Value x = graph.add_input(dense({2, 3})), mean = graph.add_input(dense({3}, 1)),
        variance = graph.add_input(dense({3}, 2));
  Value own = call(graph, "aten::clone", {mean, c10::IValue()}, dense({3}, 3));
  std::vector<Value> made;
  for (int i = 0; i < 4; ++i) made.push_back(graph.add_value(dense({3}, 4 + i)));
  graph.add_node(
      Node{op("aten::native_batch_norm"),
           {x, Value{}, Value{}, own, variance, c10::IValue(false), c10::IValue(0.1), c10::IValue(1e-5)},
           {made[0], made[1], made[2]},
           {},
           Phase::Forward,
           {}});
  EXPECT_EQ(verdict(graph), "");
  graph.nodes().back().writes = {{own, made[3]}};
  EXPECT_EQ(verdict(graph), "");
}
