// What compilers are told, and what is made true of the code that they return.
#include <tandem/build.h>

#include "compile/guarded.h"
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::contains;
using test::leaf;
using test::message;
using test::same_values;

/// Keeps what it was told, and leaves the rest to the eager backend.
Compiler keeping(std::vector<CompileContext>& told) {
  return [&told](const Graph& graph, const CompileContext& context) {
    told.push_back(context);
    return find_backend("eager")->compile(graph, context);
  };
}

TEST(Compilers, AreToldSignatureOrderAndVariant) {
  std::vector<CompileContext> told;
  Compiled fast([](const Tensors& in) { return Tensors{in[0].sin() * in[1], in[1].cos()}; },
                {.fw_compiler = keeping(told)});
  const at::Tensor a = leaf({2}), b = leaf({2});
  const Tensors out = fast({a, b});
  out[0].sum().backward({}, /*retain_graph=*/true);
  (out[0].sum() + out[1].sum()).backward({}, /*retain_graph=*/true);
  torch::autograd::grad({out[0].sum()}, {a}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0]
      .sum()
      .backward();
  fast({leaf({3}), leaf({3})});
  std::vector<std::tuple<Stage, size_t, size_t, size_t>> seen;
  for (const CompileContext& context : told)
    seen.emplace_back(context.stage, context.signature, context.order, context.variant);
  const std::vector<std::tuple<Stage, size_t, size_t, size_t>> expected = {
      {Stage::Forward, 0, 1, 0},  {Stage::Backward, 0, 1, 0}, {Stage::Backward, 0, 1, 1},
      {Stage::Backward, 0, 2, 0}, {Stage::Backward, 0, 2, 0}, {Stage::Forward, 1, 1, 0}};
  EXPECT_EQ(seen, expected);
  for (const CompileContext& context : told) EXPECT_EQ(context.device, c10::Device(c10::kCPU));
}

TEST(Compilers, AreToldWhichInputsOfABackwardStayAndWhichDie) {
  std::vector<CompileContext> told;
  const at::Tensor weight = leaf({3, 3});
  Compiled fast([&](const Tensors& in) { return Tensors{in[0].matmul(weight).sin().cos()}; },
                {.fw_compiler = keeping(told)});
  const at::Tensor x = leaf({2, 3});
  fast({x})[0].sum().backward();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].static_inputs, std::vector<size_t>{1});
  EXPECT_TRUE(told[0].donated_inputs.empty());
  EXPECT_EQ(told[0].first_tangent, 2u);
  // It takes x, the weight, two values that nobody else has, and the tangent.
  const CompileContext& backward = told[1];
  ASSERT_EQ(backward.example.size(), 5u);
  EXPECT_EQ(backward.first_tangent, 4u);
  ASSERT_EQ(backward.static_inputs.size(), 1u);
  EXPECT_EQ(backward.example[backward.static_inputs[0]].sizes, weight.sizes());
  ASSERT_EQ(backward.donated_inputs.size(), 2u);
  for (size_t i : backward.donated_inputs) EXPECT_NE(i, backward.static_inputs[0]);
}

TEST(Compilers, AreToldWhichArgumentsStay) {
  std::vector<CompileContext> told;
  auto fn = [](const Tensors& in) {
    in[0].mul_(2);
    return Tensors{in[1].matmul(in[2]).sin() * in[0].sum()};
  };
  Compiled fast(fn, {.static_arguments = {2}, .fw_compiler = keeping(told)});
  const at::Tensor weight = leaf({3, 3}), x = leaf({2, 3}), memory = torch::ones({4, 3});
  fast({torch::ones(3), x, weight})[0].sum().backward();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].static_inputs, std::vector<size_t>{2});
  ASSERT_EQ(told[1].static_inputs.size(), 1u);
  EXPECT_EQ(told[1].example[told[1].static_inputs[0]].sizes, weight.sizes());
  // The graph takes the memory that the first two share.
  fast({memory[0], memory.slice(0, 0, 2), weight});
  ASSERT_EQ(told.size(), 3u);
  ASSERT_EQ(told[2].static_inputs.size(), 1u);
  EXPECT_EQ(told[2].example[told[2].static_inputs[0]].sizes, weight.sizes());
}

/// Returns what the eager backend does, and says something else of it.
Compiler claiming(std::vector<std::vector<int64_t>> strides) {
  struct Claiming : Executable {
    std::shared_ptr<Executable> code;
    std::vector<std::vector<int64_t>> strides;
    Tensors run(Tensors&& inputs) override { return code->run(std::move(inputs)); }
    std::vector<std::vector<int64_t>> output_strides() const override { return strides; }
  };
  return {[strides](const Graph& graph, const CompileContext& context) {
            auto made = std::make_shared<Claiming>();
            made->code = find_backend("eager")->compile(graph, context);
            made->strides = strides;
            return made;
          },
          "claiming", "1"};
}

TEST(Compilers, StridesThatAreNoneOfTheOutputsAreRefusedByName) {
  auto refusal = [](std::vector<std::vector<int64_t>> strides) {
    Compiled fast([](const Tensors& in) { return Tensors{in[0] * 2}; },
                  {.fw_compiler = claiming(std::move(strides))});
    return message<Error>([&] { fast({torch::ones({2, 3})}); });
  };
  EXPECT_TRUE(contains(refusal({{1, 2}, {1, 2}}),
                       "compiler claiming chose the strides of 2 outputs; the graph has 1"));
  EXPECT_TRUE(
      contains(refusal({{1}}), "compiler claiming chose 1 strides for output 0, which has 2 dimensions"));
}

TEST(Compilers, StridesThatCannotBeMadeTheGraphsAreRefusedByName) {
  auto refusal = [](const TensorMeta& meta) {
    Graph graph;
    const Value value = graph.add_value(meta);
    graph.add_input(value);
    graph.set_outputs({value});
    return message<Error>([&] { guarded(claiming({{1, 2}})(graph, {}), graph, "backend odd"); });
  };
  TensorMeta meta{.sizes = {2, 3}, .strides = {3, 1}};
  EXPECT_EQ(refusal(meta), "");
  meta.conj = true;
  EXPECT_EQ(refusal(meta),
            "backend odd chose the strides of output 0, which is conjugated or negated lazily");
  EXPECT_EQ(refusal({.sizes = {2, 3}, .strides = {1, 1}}),
            "backend odd chose the strides of output 0, which holds elements in several places");
}

TEST(Compilers, PassesOfABackendRunOnTheGraphsOfItsStages) {
  struct Picky : Backend {
    mutable std::vector<Stage> asked;
    std::string name() const override { return "picky"; }
    std::string version() const override { return "1"; }
    std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
      return find_backend("eager")->compile(graph, context);
    }
    std::vector<Pass> passes(Stage stage) const override {
      return {{[this, stage](Graph graph) {
                 asked.push_back(stage);
                 if (breaks == stage) graph.set_outputs({});
                 return graph;
               },
               "picky pass", "1"}};
    }
    std::optional<Stage> breaks;
  };
  auto picky = std::make_shared<Picky>();
  register_backend(picky);
  auto train = [] {
    Compiled([](const Tensors& in) { return Tensors{in[0].sin()}; }, {.backend = "picky"})({leaf({2})})[0]
        .backward(torch::ones({2}));
  };
  train();
  EXPECT_EQ(picky->asked, (std::vector<Stage>{Stage::Joint, Stage::Forward, Stage::Backward}));
  for (Stage stage : {Stage::Joint, Stage::Forward, Stage::Backward}) {
    picky->breaks = stage;
    EXPECT_TRUE(contains(message<Error>(train), "the pass 'picky pass' broke a graph")) << int(stage);
  }
}

TEST(Compilers, ADecompositionIsWrittenWithTheBuilder) {
  const Decomposition squares = {
      [](Graph& graph, const Node& node) {
        Builder build(graph, node.phase);
        const Value x = std::get<Value>(node.arguments[0]), doubled = build.call("aten::add.Tensor", {x, x});
        return std::vector<Value>{build.call("aten::mul.Tensor", {doubled, doubled})};
      },
      "squares", "1"};
  Compiled fast([](const Tensors& in) { return Tensors{in[0].t().sin()}; },
                {.decompositions = DecompositionTable{{"aten::sin", squares}}});
  const at::Tensor x = torch::randn({2, 3});
  EXPECT_TRUE(same_values(fast({x})[0], (x + x).t() * (x + x).t()));
}

TEST(Compilers, WhatTheyCallOfAtenLeavesNoHistory) {
  auto compiler = [](const Graph& graph, const CompileContext& context) {
    return boxed([=](Tensors&& in) -> Tensors {
      EXPECT_FALSE(torch::GradMode::is_enabled());
      if (context.stage == Stage::Backward) return graph.run(std::move(in));
      Tensors made = graph.run(Tensors(in));
      made[0] = in[0] * 2;
      EXPECT_FALSE(made[0].requires_grad());
      return made;
    });
  };
  Compiled fast([](const Tensors& in) { return Tensors{in[0] * 2}; }, {.fw_compiler = compiler});
  const at::Tensor x = leaf({3}), y = fast({x})[0];
  EXPECT_EQ(y.grad_fn()->name(), "tandem::CompiledBackward");
  y.sum().backward();
  EXPECT_TRUE(same_values(x.grad(), torch::full({3}, 2.f)));
}

}  // namespace
}  // namespace tandem
