// Random nodes that draw from a state: bit for bit what was drawn after it was read, and the live generator
// stays where it is.
#include "graph/draws.h"
#include "graph/graph_bytes.h"
#include "ops/generator_state.h"
#include "passes/graphs.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <tandem/backend.h>
#include <tandem/error.h>
#include <tandem/passes.h>

#include <thread>

namespace tandem {
namespace {

at::Tensor live_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

/// An operator of libtorch's that draws, and what it is given besides one tensor of probabilities.
struct Draw {
  const char* op;
  std::vector<Operand> others;
  bool takes_tensor = true;
};

const c10::IValue none;

std::vector<Draw> draws() {
  const c10::IValue sizes(std::vector<int64_t>{3, 4}), yes(true);
  return {
      {"aten::native_dropout", {number(0.5), yes}},
      {"aten::bernoulli", {none}},
      {"aten::bernoulli.p", {number(0.3), none}},
      {"aten::rand_like", {none, none, none, none, none}},
      {"aten::randn_like", {none, none, none, none, none}},
      {"aten::randint_like", {c10::IValue(100), none, none, none, none, none}},
      {"aten::normal.Tensor_float", {number(2.0), none}},
      {"aten::poisson", {none}},
      {"aten::multinomial", {c10::IValue(2), c10::IValue(false), none}},
      {"aten::_standard_gamma", {none}},
      {"aten::_sample_dirichlet", {none}},
      {"aten::rrelu_with_noise_functional", {}, true},
      {"aten::exponential", {number(1.0), none}},
      {"aten::geometric", {number(0.5), none}},
      {"aten::cauchy", {number(0.0), number(1.0), none}},
      {"aten::log_normal", {number(1.0), number(2.0), none}},
      {"aten::uniform", {number(0.0), number(1.0), none}},
      {"aten::random", {none}},
      {"aten::rand", {sizes, none, none, none, none}, false},
      {"aten::randn", {sizes, none, none, none, none}, false},
      {"aten::randint", {c10::IValue(9), sizes, none, none, none, none}, false},
      {"aten::randperm", {c10::IValue(50), none, none, none, none}, false},
  };
}

/// x -> the state, two draws, the first of them again, the second from where the first one ended.
Graph drawn_twice_and_replayed(const Draw& draw) {
  Graph graph;
  Builder build(graph);
  const Value x = build.input({3, 4});
  std::vector<Operand> arguments;
  if (draw.takes_tensor) arguments.emplace_back(x);
  if (std::string(draw.op) == "aten::rrelu_with_noise_functional")
    arguments.insert(arguments.end(), {Operand(build.input({3, 4})), Operand(number(0.1)),
                                       Operand(number(0.3)), Operand(c10::IValue(true)), Operand(none)});
  arguments.insert(arguments.end(), draw.others.begin(), draw.others.end());
  const Node first = build.node(draw.op, arguments), second = build.node(draw.op, arguments);
  graph.nodes().clear();
  Node state = state_before(graph, first);
  auto again = [&](const Node& node, Value from, bool asks) {
    Node copy = node;
    for (Operand& result : copy.results)
      map_values(result, [&](Value v) {
        TensorMeta meta = graph.meta(v);
        meta.storage = graph.fresh_storage();
        return graph.add_value(meta);
      });
    copy.state = from;
    if (asks) copy.next_state = graph.add_value(state_meta(graph, c10::kCPU));
    return copy;
  };
  const Value from = std::get<Value>(state.results[0]);
  const Node third = again(first, from, true), fourth = again(second, third.next_state, true);
  std::vector<Value> outputs;
  for (const Node& node : {state, first, second, third, fourth}) graph.add_node(node);
  for (const Node& node : {first, second, third, fourth}) outputs.push_back(std::get<Value>(node.results[0]));
  outputs.push_back(fourth.next_state);
  graph.set_outputs(outputs);
  graph.verify();
  return graph;
}

Tensors inputs_of(const Graph& graph) {
  Tensors inputs;
  const bool is_rrelu = graph.inputs().size() > 1;  // which draws for negative numbers alone
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    inputs.push_back((at::rand({3, 4}) * 0.8 + 0.1) * (is_rrelu ? -1 : 1));
  return inputs;
}

void expect_replayed(const Tensors& out, const char* op) {
  EXPECT_TRUE(at::equal(out[0], out[2])) << op;
  EXPECT_TRUE(at::equal(out[1], out[3])) << op;
  EXPECT_TRUE(at::equal(out[4], live_state())) << op << ": the live generator moved while it was left alone";
}

}  // namespace

TEST(Replay, DrawsTheSameNumbersAndLeavesTheLiveGeneratorAlone) {
  for (const Draw& draw : draws()) {
    SCOPED_TRACE(draw.op);
    at::manual_seed(7);
    const Graph graph = drawn_twice_and_replayed(draw);
    const Tensors out = graph.run(inputs_of(graph));
    expect_replayed(out, draw.op);
    if (std::string(draw.op) != "aten::randperm") {
      EXPECT_FALSE(at::equal(out[0], out[1])) << "two draws are not one";
    }
  }
}

TEST(Replay, HoldsInEveryBackendOfOursAndBehindPasses) {
  for (const char* backend : {"eager", "debug"}) {
    const Graph graph = eliminate_dead_code(
        eliminate_common_subexpressions(fold_constants(drawn_twice_and_replayed(draws()[0]))));
    EXPECT_EQ(graph.nodes().size(), 5u);
    expect_replayed(find_backend(backend)->compile(graph, {})->run(inputs_of(graph)), backend);
  }
}

TEST(Replay, IsDeadWhenNobodyReadsItUnlikeADraw) {
  Graph graph = drawn_twice_and_replayed(draws()[1]);
  graph.set_outputs({});
  EXPECT_EQ(eliminate_dead_code(graph).nodes().size(), 2u);
}

TEST(Replay, SurvivesTextAndBytesAndChangesTheHash) {
  const Graph graph = drawn_twice_and_replayed(draws()[0]);
  EXPECT_NE(graph.to_string().find(" draws (%"), std::string::npos);
  EXPECT_EQ(Graph::parse(graph.to_string()).to_string(), graph.to_string());
  EXPECT_EQ(decode_graph(encode_graph(graph)).to_string(), graph.to_string());
  EXPECT_EQ(Graph::parse(graph.to_string()).hash(), graph.hash());
  Graph live = graph;
  live.nodes()[3].state = {};
  live.nodes()[3].next_state = {};
  EXPECT_NE(live.hash(), graph.hash());
}

TEST(Replay, OfWhatDrawsNothingIsRefused) {
  Graph graph = drawn_twice_and_replayed(draws()[0]);
  Builder build(graph);
  Node sine = build.node("aten::sin", {graph.inputs()[0]});
  graph.nodes().back().state = graph.nodes()[3].state;
  EXPECT_THROW(graph.verify(), Error);
  graph.nodes().pop_back();
  graph.nodes()[3].state = graph.inputs()[0];
  EXPECT_THROW(graph.verify(), Error);
}

TEST(Replay, ThreadsThatDrawMeanwhileChangeNothing) {
  const Graph graph = drawn_twice_and_replayed(draws()[0]);
  const Tensors inputs = inputs_of(graph);
  Graph replay = graph;
  replay.nodes().erase(replay.nodes().begin(), replay.nodes().begin() + 3);
  const Value state = replay.nodes()[0].state;
  std::vector<Value> given = graph.inputs();
  given.push_back(state);
  replay.set_inputs(given);
  replay.set_outputs({std::get<Value>(replay.nodes()[0].results[0])});
  const at::Tensor from = live_state();
  auto run = [&] {
    Tensors all = inputs;
    all.push_back(from);
    return replay.run(std::move(all))[0];
  };
  const at::Tensor want = run();
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) at::rand({64});
  });
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(at::equal(run(), want));
  stop = true;
  other.join();
}

}  // namespace tandem
