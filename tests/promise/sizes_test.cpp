// Compiling must pay: calls that are all different run as they are, calls that come again are compiled.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::counter;
using test::same_values;

struct Counted {
  uint64_t traces = counter("trace"), uncompiled = counter("ran_uncompiled");
  uint64_t traced() const { return counter("trace") - traces; }
  uint64_t ran_uncompiled() const { return counter("ran_uncompiled") - uncompiled; }
};

TEST(Sizes, ThreeHundredInThreeHundredStepsAreHardlyCompiled) {
  const Callable fn = [](const Tensors& in) { return Tensors{in[0].sin().sum()}; };
  Compiled fast(fn, {.watched_calls = false});
  const Counted counted;
  for (int64_t n = 1; n <= 300; ++n)
    EXPECT_TRUE(same_values(fast({torch::ones(n)})[0], fn({torch::ones(n)})[0]));
  EXPECT_LE(counted.traced(), 4u);
  EXPECT_GE(counted.ran_uncompiled(), 296u);
}

TEST(Sizes, EightInThreeHundredStepsAreAllCompiled) {
  const Callable fn = [](const Tensors& in) { return Tensors{in[0].sin().sum()}; };
  Compiled fast(fn, {.watched_calls = false});
  const Counted counted;
  for (int64_t step = 0; step < 300; ++step) fast({torch::ones(1 + step * 5 % 8)});
  EXPECT_EQ(counted.traced(), 8u);
  const uint64_t before = counter("ran_uncompiled");
  for (int64_t n = 1; n <= 8; ++n) fast({torch::ones(n)});
  EXPECT_EQ(counter("ran_uncompiled"), before);
}

TEST(Sizes, AFewSignaturesAreCompiledAtOnce) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0] * 2}; }, {});
  const Counted counted;
  for (int64_t n = 1; n <= 3; ++n) fast({torch::ones(n)});
  EXPECT_EQ(counted.traced(), 3u);
  EXPECT_EQ(counted.ran_uncompiled(), 0u);
}

TEST(Sizes, WhoWantsEverythingCompiledGetsIt) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0] * 2}; }, {.must_compile = true});
  const Counted counted;
  for (int64_t n = 1; n <= 20; ++n) fast({torch::ones(n)});
  EXPECT_EQ(counted.traced(), 20u);
}

TEST(Sizes, AStateThatIsReplacedAtEveryCallEndsCompiling) {
  at::Tensor state = torch::ones(1), wanted = torch::ones(1);
  Compiled fast([&](const Tensors& in) { return Tensors{state * 0.5 + in[0]}; }, {});
  const Counted counted;
  for (int i = 0; i < 200; ++i) {
    state = fast({torch::ones(1)})[0].detach();
    wanted = wanted * 0.5 + 1;
    ASSERT_TRUE(same_values(state, wanted)) << i;
  }
  EXPECT_LE(counted.traced(), 12u);
}

}  // namespace
}  // namespace tandem
