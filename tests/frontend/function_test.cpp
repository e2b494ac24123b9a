#include "frontend/compare.h"

#include <thread>

namespace tandem {
namespace {

using test::counter;
using test::gradients;
using test::same_tensor;

at::Tensor leaf(at::IntArrayRef sizes) { return torch::randn(sizes).requires_grad_(); }

at::Tensor product(const at::Tensor& a, at::Tensor b) { return (a * b).tanh(); }

TEST(CompileFunction, AFunctionOfAListGivesCompiled) {
  Compiled fast =
      compile([](const Tensors& in) { return Tensors{(in[0] * in[1]).tanh()}; }, {.name = "product"});
  at::Tensor a = leaf({3}), b = leaf({3});
  at::Tensor got = fast({a, b})[0], want = product(a, b);
  EXPECT_TRUE(same_tensor(got, want));
  test::expect_same(gradients(got, {a, b}), gradients(want, {a, b}));
}

TEST(CompileFunction, ATypedFunctionIsCalledLikeTheOriginal) {
  auto lambda = compile([](at::Tensor a, const at::Tensor& b) { return (a * b).tanh(); });
  auto function = compile(product);
  auto pointer = compile(&product);
  auto erased = compile(std::function<at::Tensor(at::Tensor, at::Tensor)>(product));
  at::Tensor a = leaf({2, 3}), b = leaf({3});
  for (const at::Tensor& got : {lambda(a, b), function(a, b), pointer(a, b), erased(a, b)}) {
    EXPECT_TRUE(same_tensor(got, product(a, b)));
    test::expect_same(gradients(got, {a, b}), gradients(product(a, b), {a, b}));
  }
}

TEST(CompileFunction, ExplainCompilesWithoutRunning) {
  auto fast = compile([](at::Tensor a) { return a.add_(1); });
  at::Tensor a = torch::zeros(2);
  Explanation explanation = fast.explain(a);
  EXPECT_GT(explanation.nodes_recorded, 0u);
  EXPECT_TRUE(same_tensor(a, torch::zeros(2)));
}

TEST(CompileFunction, ResultsOfEveryShapeComeBack) {
  at::Tensor a = leaf({2}), b = leaf({2});
  auto tuple = compile([](at::Tensor x, at::Tensor y) {
    return std::make_tuple(x + y, Tensors{x, x * y}, std::optional<at::Tensor>(), 3, std::string("mean"));
  });
  for (int round = 0; round < 2; ++round) {
    auto [sum, list, none, number, text] = tuple(a, b);
    EXPECT_TRUE(same_tensor(sum, a + b));
    ASSERT_EQ(list.size(), 2u);
    EXPECT_TRUE(list[0].is_same(a));
    EXPECT_TRUE(same_tensor(list[1], a * b));
    EXPECT_FALSE(none.has_value());
    EXPECT_EQ(number, 3);
    EXPECT_EQ(text, "mean");
  }
  auto list = compile([](at::Tensor x) { return x.unbind(); });
  EXPECT_EQ(list(leaf({2, 3})).size(), 2u);
  EXPECT_EQ(list(leaf({4, 3})).size(), 4u);
  auto dict =
      compile([](at::Tensor x) { return std::map<std::string, at::Tensor>{{"twice", x * 2}, {"none", {}}}; });
  EXPECT_TRUE(same_tensor(dict(a).at("twice"), a * 2));
  EXPECT_FALSE(dict(a).at("none").defined());
}

TEST(CompileFunction, NothingReturnedIsNothingReturned) {
  auto fast = compile([](at::Tensor x) { x.add_(1); });
  at::Tensor x = torch::zeros(2);
  fast(x);
  fast(x);
  EXPECT_TRUE(same_tensor(x, torch::full({2}, 2.0)));
}

TEST(CompileFunction, NestedArgumentsArePutTogetherAgain) {
  using Batch = std::map<std::string, std::vector<std::pair<at::Tensor, std::optional<at::Tensor>>>>;
  auto original = [](const Batch& batch) {
    at::Tensor sum = torch::zeros({});
    for (const auto& [name, items] : batch)
      for (const auto& [x, weight] : items)
        sum = sum + (weight ? x * *weight : x).sum() * static_cast<double>(name.size());
    return sum;
  };
  auto fast = compile(original);
  at::Tensor a = leaf({2}), b = leaf({3}), w = leaf({3});
  Batch first{{"x", {{a, std::nullopt}, {b, w}}}, {"long", {{b, std::nullopt}}}}, second{{"x", {{b, w}}}};
  for (const Batch& batch : {first, second, first}) {
    at::Tensor got = fast(batch), want = original(batch);
    EXPECT_TRUE(same_tensor(got, want));
    test::expect_same(gradients(got, {b, w}), gradients(want, {b, w}));
  }
}

TEST(CompileFunction, AnotherNumberIsAnotherTraceWithItsOwnResult) {
  auto original = [](at::Tensor x, double scale, bool flip, const std::string& kind, at::IntArrayRef dims) {
    at::Tensor y = kind == "sum" ? x.sum(dims) : x.mean(dims);
    return (flip ? -y : y) * scale;
  };
  auto fast = compile(original);
  at::Tensor x = leaf({2, 3});
  uint64_t before = counter("trace");
  EXPECT_TRUE(same_tensor(fast(x, 2.0, false, "sum", {0}), original(x, 2.0, false, "sum", {0})));
  EXPECT_TRUE(same_tensor(fast(x, 3.0, false, "sum", {0}), original(x, 3.0, false, "sum", {0})));
  EXPECT_TRUE(same_tensor(fast(x, 3.0, true, "mean", {0, 1}), original(x, 3.0, true, "mean", {0, 1})));
  EXPECT_EQ(counter("trace") - before, 3u);
  EXPECT_TRUE(same_tensor(fast(x, 2.0, false, "sum", {0}), original(x, 2.0, false, "sum", {0})));
  EXPECT_EQ(counter("trace") - before, 3u) << "seen before";
}

TEST(CompileFunction, OnlyMaxSignaturesOfThemAreKept) {
  auto fast = compile([](at::Tensor x, int n) { return x + n; }, {.name = "counting", .max_signatures = 2});
  at::Tensor x = torch::zeros(1);
  uint64_t evicted = counter("signature_evicted");
  testing::internal::CaptureStderr();
  for (int n = 0; n < 4; ++n) EXPECT_EQ(fast(x, n).item<float>(), n);
  std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(counter("signature_evicted") - evicted, 2u);
  uint64_t before = counter("trace");
  fast(x, 3);
  EXPECT_EQ(counter("trace"), before);
  fast(x, 0);
  EXPECT_EQ(counter("trace"), before + 1);
}

TEST(CompileFunction, UndefinedTensorsArePassedOnAsNone) {
  auto fast = compile([](at::Tensor x, at::Tensor mask) { return mask.defined() ? x * mask : x + 1; });
  at::Tensor x = leaf({2}), mask = torch::rand({2});
  EXPECT_TRUE(same_tensor(fast(x, {}), x + 1));
  EXPECT_TRUE(same_tensor(fast(x, mask), x * mask));
  EXPECT_TRUE(same_tensor(fast(x, at::Tensor()), x + 1));
}

TEST(CompileFunction, FunctionsThatCannotBeCopiedWork) {
  auto typed = compile([owned = std::make_unique<double>(2.0)](at::Tensor x) { return x * *owned; });
  auto listed =
      compile([owned = std::make_unique<double>(2.0)](const Tensors& in) { return Tensors{in[0] * *owned}; });
  at::Tensor x = torch::ones(2);
  EXPECT_TRUE(same_tensor(typed(x), x * 2));
  EXPECT_TRUE(same_tensor(listed({x})[0], x * 2));
}

TEST(CompileFunction, CopiesShareWhatWasCompiled) {
  auto fast = compile([](at::Tensor x) { return x.exp(); });
  auto copy = fast;
  at::Tensor x = torch::ones(2);
  fast(x);
  uint64_t before = counter("trace");
  copy(x);
  EXPECT_EQ(counter("trace"), before);
}

TEST(CompileFunction, ACompiledFunctionInsideAnotherIsRecordedThrough) {
  auto inner = compile([](at::Tensor x, double s) { return std::make_pair(x.sin() * s, s); });
  auto outer = compile([inner](at::Tensor x) { return inner(x, 2.0).first + inner(x, 3.0).first; });
  at::Tensor x = leaf({3});
  for (int round = 0; round < 2; ++round) {
    at::Tensor got = outer(x), want = x.sin() * 2.0 + x.sin() * 3.0;
    EXPECT_TRUE(same_tensor(got, want));
    test::expect_same(gradients(got, {x}), gradients(want, {x}));
  }
}

TEST(CompileFunction, CallsFromSeveralThreadsWithDifferentNumbersAreRight) {
  auto fast = compile([](at::Tensor x, int n) { return x * n; });
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      at::Tensor x = torch::ones(2);
      for (int i = 0; i < 50; ++i) wrong[t] += fast(x, (t + i) % 5)[0].item<float>() != (t + i) % 5;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(CompileFunction, AnArgumentIsNamedByItsPlace) {
  auto fast = compile([](at::Tensor x, const Tensors& rest) { return x + rest[1]; });
  Explanation explanation = fast.explain(torch::ones(2), {torch::ones(2), torch::ones(2)});
  ASSERT_GE(explanation.contract.inputs.size(), 2u);
  std::vector<std::string> names;
  for (const Contract::Input& role : explanation.contract.inputs) names.push_back(role.name);
  EXPECT_NE(std::find(names.begin(), names.end(), "argument 0"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "argument 1[1]"), names.end());
}

TEST(CompileFunction, AnUntraceableCallIsNamedWithItsPlaceInTheProgram) {
  auto fast = compile([](at::Tensor x) { return x * x.sum().item<float>(); }, {.must_compile = true});
  std::string sentence = test::message<UnsupportedError>([&] { fast(torch::ones(2)); });
  EXPECT_NE(sentence.find("item"), sentence.npos) << sentence;
#ifdef TANDEM_HAVE_LIBDW
  EXPECT_NE(sentence.find("function_test.cpp:"), sentence.npos) << sentence;
#else
  if (!HasFailure())
    GTEST_SKIP() << "built without libdw: the name was checked, the place in the source was not";
#endif
}

TEST(CompileFunction, OneOfNothingSaysSoWhenItIsCalled) {
  CompiledFunction<at::Tensor(const at::Tensor&)> fast;
  EXPECT_NE(test::message<Error>([&] { fast(torch::ones(2)); }).find("nothing was compiled"),
            std::string::npos);
  fast = compile([](const at::Tensor& x) { return x.sin(); });
  EXPECT_TRUE(same_tensor(fast(torch::ones(2)), torch::ones(2).sin()));

  Compiled of_lists;
  EXPECT_NE(test::message<Error>([&] { of_lists({torch::ones(2)}); }).find("nothing was compiled"),
            std::string::npos);
  EXPECT_NE(test::message<Error>([&] { of_lists.explain({torch::ones(2)}); }).find("nothing was compiled"),
            std::string::npos);
  CompiledScript script;
  EXPECT_NE(test::message<Error>([&] { script(torch::ones(2)); }).find("nothing was compiled"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem
