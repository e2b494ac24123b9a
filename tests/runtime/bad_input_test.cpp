// Programs and inputs that cannot be compiled: a clear error or what eager does, and the inputs stay as they
// were.
#include "runtime/compare.h"

#include <stdexcept>

namespace tandem {
namespace {

using test::contains;
using test::counter;
using test::leaf;
using test::message;
using test::same_values;

TEST(BadInput, UndefinedWhereNeededIsAnErrorAsInEager) {
  Callable fn = [](const Tensors& in) { return Tensors{in[0] + in[1]}; };
  Compiled fast(fn, {});
  EXPECT_ANY_THROW(fn({leaf({2}), at::Tensor()}));
  EXPECT_ANY_THROW(fast({leaf({2}), at::Tensor()}));
  at::Tensor a = leaf({2}), b = leaf({2});
  EXPECT_TRUE(same_values(fast({a, b})[0], a + b));
}

TEST(BadInput, UndefinedWhereAllowedIsPartOfTheSignature) {
  Compiled fast([](const Tensors& in) { return Tensors{in[1].defined() ? in[0] + in[1] : in[0] * 2, in[1]}; },
                {});
  at::Tensor a = leaf({2}), b = leaf({2});
  Tensors without = fast({a, at::Tensor()}), with = fast({a, b});
  EXPECT_TRUE(same_values(without[0], a * 2));
  EXPECT_FALSE(without[1].defined());
  EXPECT_TRUE(same_values(with[0], a + b));
  EXPECT_TRUE(with[1].is_same(b));
}

TEST(BadInput, AFunctionThatThrowsThrowsItsOwnException) {
  struct Own : std::logic_error {
    using std::logic_error::logic_error;
  };
  bool angry = true;
  Compiled fast(
      [&](const Tensors& in) -> Tensors {
        at::Tensor y = in[0].mul_(2);
        if (angry) throw Own("not today");
        return {y};
      },
      {});
  at::Tensor a = torch::ones(3);
  auto version = a._version();
  EXPECT_EQ(message<Own>([&] { fast({a}); }), "not today");
  EXPECT_TRUE(same_values(a, torch::ones(3)));
  EXPECT_EQ(a._version(), version);
  angry = false;
  EXPECT_TRUE(same_values(fast({a})[0], torch::full(3, 2.f)));
}

TEST(BadInput, InputsAndGeneratorsAreUntouchedByAFailedCompile) {
  at::Tensor a = torch::arange(4.f), captured = torch::ones(4), written = torch::zeros(4);
  Compiled fast(
      [&](const Tensors& in) {
        in[0].add_(captured);
        captured.mul_(3);
        written.normal_();
        torch::dropout(in[0], 0.5, true);
        return Tensors{in[0].masked_select(in[0] > 1)};
      },
      {.must_compile = true});
  torch::manual_seed(1);
  at::Tensor next = torch::rand(3);
  torch::manual_seed(1);
  EXPECT_THROW(fast({a}), UnsupportedError);
  EXPECT_TRUE(same_values(torch::rand(3), next));
  EXPECT_TRUE(same_values(a, torch::arange(4.f)));
  EXPECT_TRUE(same_values(captured, torch::ones(4)));
  EXPECT_TRUE(same_values(written, torch::zeros(4)));
  EXPECT_EQ(a._version(), 0u);
  EXPECT_EQ(captured._version(), 0u);
  EXPECT_EQ(written._version(), 0u);
}

TEST(BadInput, ACaptureCanBeReturned) {
  at::Tensor captured = leaf({2});
  Compiled fast([&](const Tensors& in) { return Tensors{captured, captured.view({1, 2}), in[0] * captured}; },
                {});
  at::Tensor a = leaf({2});
  for (int round = 0; round < 2; ++round) {
    Tensors out = fast({a});
    EXPECT_TRUE(out[0].is_same(captured));
    EXPECT_TRUE(out[1].storage().is_alias_of(captured.storage()));
    EXPECT_TRUE(same_values(torch::autograd::grad({out[1].sum() + out[2].sum()}, {captured})[0], a + 1));
  }
}

TEST(BadInput, AnUntouchedCaptureOrArgumentIsReturnedAsItIs) {
  at::Tensor captured = torch::ones(2);
  Compiled fast([&](const Tensors& in) { return Tensors{in[0], captured, in[0]}; }, {});
  at::Tensor a = leaf({2});
  Tensors out = fast({a});
  EXPECT_TRUE(out[0].is_same(a) && out[1].is_same(captured) && out[2].is_same(a));
}

TEST(BadInput, NothingReturnedAndNothingDone) {
  Compiled nothing([](const Tensors&) { return Tensors{}; }, {});
  EXPECT_TRUE(nothing({leaf({2})}).empty());
  EXPECT_TRUE(nothing({}).empty());
  Compiled write(
      [](const Tensors& in) {
        in[0].add_(1);
        return Tensors{};
      },
      {});
  at::Tensor a = torch::zeros(2);
  EXPECT_TRUE(write({a}).empty());
  EXPECT_TRUE(write({a}).empty());
  EXPECT_TRUE(same_values(a, torch::full(2, 2.f)));
  Compiled constant([](const Tensors&) { return Tensors{torch::ones(2)}; }, {});
  at::Tensor first = constant({})[0], second = constant({})[0];
  EXPECT_TRUE(same_values(first, torch::ones(2)));
  EXPECT_FALSE(first.storage().is_alias_of(second.storage()));
}

TEST(BadInput, ATensorKeptBeyondTheTraceIsATensorLikeAnyOther) {
  at::Tensor kept;
  Compiled fast(
      [&](const Tensors& in) {
        kept = in[0] * 2;
        return Tensors{kept + 1};
      },
      {});
  at::Tensor a = leaf({2});
  EXPECT_TRUE(same_values(fast({a})[0], a * 2 + 1));
  EXPECT_TRUE(same_values(kept, a * 2));
  EXPECT_NO_THROW(kept.data_ptr());
  EXPECT_TRUE(same_values(fast({kept})[0], a * 4 + 1));
  Compiled other([&](const Tensors& in) { return Tensors{in[0] + kept}; }, {});
  EXPECT_TRUE(same_values(other({a})[0], a + kept));
  EXPECT_TRUE(same_values(fast({a})[0], a * 2 + 1));
}

TEST(BadInput, AnEmptyFunctionIsAnError) {
  EXPECT_TRUE(contains(message<Error>([] { Compiled(Callable(), {}); }), "empty function"));
}

TEST(BadInput, OptionsThatCannotBeServedAreRefusedAtOnce) {
  Callable fn = [](const Tensors& in) { return in; };
  std::string backend = message<Error>([&] { Compiled(fn, {.backend = "no such backend"}); });
  EXPECT_TRUE(contains(backend, "no such backend") && contains(backend, "eager") &&
              contains(backend, "debug"))
      << backend;
  std::string partitioner = message<Error>([&] { Compiled(fn, {.partitioner = "no such partitioner"}); });
  EXPECT_TRUE(contains(partitioner, "no such partitioner") && contains(partitioner, "default"))
      << partitioner;
  EXPECT_TRUE(contains(message<UnsupportedError>([&] { Compiled(fn, {.cudagraphs = true}); }), "cudagraphs"));
  EXPECT_THROW(Compiled(fn, {.memory_budget = 1.5}), Error);
  EXPECT_THROW(Compiled(fn, {.memory_budget_bytes = -1}), Error);
  EXPECT_THROW(Compiled(fn, {.random = "philox"}), Error);
  EXPECT_THROW(Compiled(fn, {.watch = {nullptr}}), Error);
  EXPECT_THROW(Compiled(fn, {.max_signatures = 0}), Error);
}

TEST(BadInput, WrongSizesAreEagersError) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].mm(in[1])}; }, {});
  at::Tensor a = leaf({2, 3}), b = leaf({2, 3});
  EXPECT_THROW(fast({a, b}), c10::Error);
  EXPECT_TRUE(same_values(fast({a, b.t()})[0], a.mm(b.t())));
}

TEST(BadInput, TooFewArgumentsIsTheFunctionsOwnError) {
  Compiled fast([](const Tensors& in) { return Tensors{in.at(0) + in.at(1)}; }, {});
  EXPECT_THROW(fast({leaf({2})}), std::out_of_range);
}

TEST(BadInput, AWriteToALeafThatRequiresGradIsEagersError) {
  Callable fn = [](const Tensors& in) { return Tensors{in[0].mul_(2)}; };
  Compiled fast(fn, {});
  at::Tensor a = leaf({2}), before = a.detach().clone();
  std::string want = message([&] { fn({a}); }), got = message([&] { fast({a}); });
  EXPECT_TRUE(contains(want, "a leaf Variable that requires grad") &&
              contains(got, "a leaf Variable that requires grad"))
      << got;
  EXPECT_TRUE(same_values(a, before));
}

TEST(BadInput, MixedDevicesAreAnError) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs CUDA";
  Compiled fast([](const Tensors& in) { return Tensors{in[0] + in[1]}; }, {});
  EXPECT_ANY_THROW(fast({torch::ones(2), torch::ones(2, at::kCUDA)}));
  EXPECT_TRUE(same_values(fast({torch::ones(2, at::kCUDA), torch::ones({}, at::kFloat)})[0].cpu(),
                          torch::full(2, 2.f)));
}

TEST(BadInput, ACompileThatFailedCanBeTriedAgain) {
  bool works = false;
  Compiled fast([](const Tensors& in) { return Tensors{in[0].tanh()}; },
                {.fw_compiler = Compiler(
                     [&](const Graph& graph, const CompileContext& context) -> std::shared_ptr<Executable> {
                       if (!works) return nullptr;
                       return find_backend("eager")->compile(graph, context);
                     })});
  at::Tensor a = leaf({2});
  EXPECT_TRUE(contains(message<Error>([&] { fast({a}); }), "returned no executable"));
  works = true;
  EXPECT_TRUE(same_values(fast({a})[0], a.tanh()));
}

}  // namespace
}  // namespace tandem
