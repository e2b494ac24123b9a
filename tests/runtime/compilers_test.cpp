// Compilers, partitioners, passes and decompositions that the user brings.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::contains;
using test::counter;
using test::leaf;
using test::message;
using test::same_values;

/// Writes down what it is asked to compile, and leaves the rest to the eager backend.
Compiler noting(std::vector<Stage>& seen) {
  return [&seen](const Graph& graph, const CompileContext& context) {
    seen.push_back(context.stage);
    EXPECT_NO_THROW(graph.verify());
    EXPECT_EQ(context.example.size(), graph.inputs().size());
    EXPECT_NE(context.options, nullptr);
    EXPECT_FALSE(context.contract.inputs.empty());
    return find_backend("eager")->compile(graph, context);
  };
}

Tensors twice_sine(const Tensors& in) { return {in[0].sin().sin()}; }

TEST(Compilers, BackwardAndInferenceFallBackToTheForwards) {
  std::vector<Stage> seen;
  Compiled fast(twice_sine, {.backend = "no such backend", .fw_compiler = noting(seen)});
  fast({leaf({2})})[0].sum().backward();
  fast({leaf({2}, false)});
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1], Stage::Backward);
  EXPECT_EQ(seen[2], Stage::Inference);
}

TEST(Compilers, TheWrongNumberOfResultsIsAnError) {
  auto compiler = [](const Graph&, const CompileContext&) {
    return boxed([](Tensors&&) { return Tensors{}; });
  };
  Compiled fast(twice_sine, {.fw_compiler = compiler});
  EXPECT_TRUE(contains(message<Error>([&] { fast({leaf({2})}); }), "returned 0 tensors instead of"));
}

TEST(Compilers, ABackendOfTheUsersOwn) {
  struct Own : Backend {
    std::string name() const override { return "runtime test's own"; }
    std::string version() const override { return "1"; }
    std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext&) override {
      return boxed([graph](Tensors&& in) { return graph.run(std::move(in)); });
    }
    void reset() override { ++resets; }
    int resets = 0;
  };
  auto own = std::make_shared<Own>();
  register_backend(own);
  Compiled fast(twice_sine, {.backend = "runtime test's own"});
  at::Tensor a = leaf({2});
  EXPECT_TRUE(same_values(fast({a})[0], a.sin().sin()));
  reset();
  EXPECT_EQ(own->resets, 1);
}

void expect_code_is_made_anew(const std::function<void(bool on)>& set) {
  std::vector<Stage> seen;
  const Options own{.fw_compiler = noting(seen)};
  Compiled fast(twice_sine, own), interpreted(twice_sine, {});
  const Tensors inputs{leaf({2}, false)};
  auto traces_of = [&](Compiled& fn) {
    const uint64_t before = counter("trace");
    fn(inputs);
    return counter("trace") - before;
  };
  EXPECT_EQ(traces_of(fast) + traces_of(interpreted), 2u);
  set(true);
  EXPECT_EQ(traces_of(fast), 1u);
  EXPECT_EQ(traces_of(interpreted), 0u) << "libtorch's kernels ask when they run";
  set(false);
  EXPECT_EQ(traces_of(fast), 0u);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(Compilers, CodeIsMadeAnewWhereThePrecisionOfBeforeMayBeBuiltIn) {
  expect_code_is_made_anew([](bool on) { at::globalContext().setBenchmarkCuDNN(on); });
}

TEST(Compilers, CodeIsMadeAnewWhereDenormalsAreFlushed) {
  if (!at::globalContext().setFlushDenormal(false)) GTEST_SKIP() << "this processor has no such mode";
  expect_code_is_made_anew([](bool on) { at::globalContext().setFlushDenormal(on); });
}

TEST(Compilers, CodeIsMadeAnewForAnotherNumberOfThreads) {
  const int threads = at::get_num_threads();
  expect_code_is_made_anew([&](bool on) { at::set_num_threads(threads + on); });
}

TEST(Compilers, AreToldTheThreadsOfTheFirstCallThoughTheBackwardComesLater) {
  const int threads = at::get_num_threads();
  std::vector<int> told;
  Compiled fast(twice_sine, {.fw_compiler = Compiler([&](const Graph& graph, const CompileContext& context) {
                               told.push_back(context.threads);
                               return find_backend("eager")->compile(graph, context);
                             })});
  const at::Tensor loss = fast({leaf({2})})[0].sum();
  at::set_num_threads(threads + 1);
  loss.backward();
  at::set_num_threads(threads);
  EXPECT_EQ(told, (std::vector<int>{threads, threads}));
}

TEST(Partitioning, F9_AUsersPartitionFunctionIsCalled) {
  int calls = 0;
  Compiled fast(twice_sine,
                {.memory_budget = 0.25,
                 .partition_fn = Partitioner([&](const Joint& joint, const PartitionContext& context) {
                   ++calls;
                   EXPECT_EQ(joint.primals, 1u);
                   EXPECT_EQ(joint.forward_outputs, 1u);
                   EXPECT_EQ(context.memory_budget, 0.25);
                   return partition_default(joint, context);
                 })});
  at::Tensor a = leaf({2});
  EXPECT_TRUE(same_values(torch::autograd::grad({fast({a})[0].sum()}, {a})[0],
                          torch::autograd::grad({a.sin().sin().sum()}, {a})[0]));
  EXPECT_EQ(calls, 1);
  register_partitioner("runtime test's own",
                       Partitioner([&](const Joint& joint, const PartitionContext& context) {
                         return ++calls, partition_default(joint, context);
                       }));
  Compiled(twice_sine, {.partitioner = "runtime test's own"})({a});
  EXPECT_EQ(calls, 2);
}

TEST(Passes, RegisteredOnesSeeEveryGraphOfTheirStage) {
  static std::map<Stage, int> calls;
  static bool counting = true;
  for (Stage stage : {Stage::Joint, Stage::Forward, Stage::Backward, Stage::Inference})
    register_pass(stage, Pass([stage](Graph graph) {
                    if (counting) ++calls[stage];
                    return graph;
                  }));
  Compiled fast(twice_sine, {});
  fast({leaf({2})});
  EXPECT_EQ(calls[Stage::Joint], 1);
  EXPECT_EQ(calls[Stage::Forward], 1);
  EXPECT_EQ(calls[Stage::Backward], 0);
  EXPECT_EQ(calls[Stage::Inference], 0);
  fast({leaf({2})})[0].sum().backward();
  fast({leaf({2}, false)});
  EXPECT_EQ(calls[Stage::Inference], 1);
  EXPECT_GE(calls[Stage::Backward], 1);
  counting = false;
}

bool calls_operator(const Graph& graph, const std::string& name) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& node) { return node.op.schema().name() == name; });
}

TEST(Decompositions, OnlyThoseOfTheTableAreApplied) {
  Callable fn = [](const Tensors& in) { return Tensors{torch::gelu(in[0])}; };
  at::Tensor a = leaf({3});
  Explanation whole = Compiled(fn, {.decompositions = DecompositionTable{}}).explain({a});
  EXPECT_TRUE(calls_operator(whole.joint, "aten::gelu_backward"));
  Compiled decomposed(fn, {.decompositions = default_decompositions()});
  Explanation parts = decomposed.explain({a});
  test::verify(parts);
  EXPECT_FALSE(calls_operator(parts.joint, "aten::gelu_backward"));
  at::Tensor got = torch::autograd::grad({decomposed({a})[0].sum()}, {a})[0];
  EXPECT_TRUE(at::allclose(got, torch::autograd::grad({torch::gelu(a).sum()}, {a})[0], 1e-5, 1e-6));
}

TEST(DebugAsserts, ACapturedNumberThatChangesIsNoticed) {
  int64_t dim = 0;
  Callable fn = [&](const Tensors& in) { return Tensors{in[0].sum(dim)}; };
  Compiled careful(fn, {.debug_asserts = true}), careless(fn, {.watched_calls = false});
  at::Tensor a = leaf({2, 2});
  careful({a});
  careless({a});
  dim = 1;
  EXPECT_TRUE(contains(message<Error>([&] { careful({a}); }), "captured number or flag"));
  EXPECT_TRUE(same_values(careless({a})[0], a.sum(0)));
  dim = 0;
  EXPECT_TRUE(same_values(careful({a})[0], a.sum(0)));
}

TEST(DebugAsserts, ACaptureReplacedWhileTheOldOneLivesIsNoticed) {
  at::Tensor captured = leaf({2});
  Compiled careful([&](const Tensors& in) { return Tensors{in[0] * captured}; }, {.debug_asserts = true});
  at::Tensor a = leaf({2});
  careful({a});
  at::Tensor best = captured;
  captured = leaf({2});
  at::Tensor got;
  std::string failure = message<Error>([&] { got = careful({a})[0]; });
  EXPECT_TRUE(!failure.empty() || same_values(got, a * captured)) << "the old tensor was used";
}

}  // namespace
}  // namespace tandem
