// Functions that read the generator's state, draw, and put it back: what they draw again is what they drew.
#include "runtime/checkpoint.h"

#include <gtest/gtest.h>
#include <tandem/tandem.h>

namespace tandem {
namespace {

using test::Checkpoint;
using test::part;
using test::set_state;
using test::state;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The state is the one behind the forward's last draw, which compiled code knows nothing of.
struct DrawsLater : torch::autograd::Function<DrawsLater> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x) {
    context->saved_data["state"] = state();
    return x * 2;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor now = state();
    set_state(context->saved_data["state"].toTensor());
    const at::Tensor drawn = torch::rand_like(gradients[0]);
    set_state(now);
    return {gradients[0] * drawn};
  }
};

Tensors checkpointed(const Tensors& in) {
  return {Checkpoint<part>::apply(torch::dropout(in[0], 0.1, true)) * torch::rand_like(in[0])};
}
Tensors draws_later(const Tensors& in) { return {DrawsLater::apply(torch::dropout(in[0], 0.1, true))}; }

/// Its own numbers again, within the forward.
Tensors drawn_twice(const Tensors& in) {
  const at::Tensor before = state(), first = part(in[0]), live = state();
  set_state(before);
  const at::Tensor again = part(in[0]);
  set_state(live);
  return {first * again, torch::rand_like(first)};
}

Tensors results_of(const std::function<Tensors(const Tensors&)>& fn, const at::Tensor& x) {
  torch::manual_seed(11);
  Tensors out = fn({x});
  out.push_back(state());
  torch::rand({3});
  out.push_back(torch::autograd::grad({out[0].sum()}, {x})[0]);
  out.push_back(state());
  return out;
}

void expect_eagers(const std::function<Tensors(const Tensors&)>& fn, bool compiles) {
  for (const char* backend : {"eager", "debug"})
    for (const char* partitioner : {"min_cut", "default", "recompute_all", "save_all"}) {
      SCOPED_TRACE(std::string(backend) + ", " + partitioner);
      Compiled fast = compile(fn, {.backend = backend, .partitioner = partitioner});
      const at::Tensor x = torch::randn(16).requires_grad_();
      for (int call = 0; call < 3; ++call) {
        const Tensors want = results_of(fn, x),
                      got = results_of([&](const Tensors& in) { return fast(in); }, x);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << call << ": " << i;
      }
      EXPECT_EQ(fast.explain({x}).eager_reason.empty(), compiles) << fast.explain({x}).eager_reason;
    }
}

/// Of a stranger who knows nothing of states.
class Stranger final : public Backend {
 public:
  std::string name() const override { return "stranger"; }
  std::string version() const override { return "1"; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    for (const Node& node : graph.nodes()) EXPECT_FALSE(node.state);
    return find_backend("eager")->compile(graph, context);
  }
};

}  // namespace

TEST(Checkpoints, AreLeftToEagerWhereABackendKnowsNothingOfStates) {
  register_backend(std::make_shared<Stranger>());
  Compiled fast = compile(checkpointed, {.backend = "stranger"});
  const at::Tensor x = torch::randn(16).requires_grad_();
  const Tensors want = results_of(checkpointed, x),
                got = results_of([&](const Tensors& in) { return fast(in); }, x);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
  EXPECT_NE(fast.explain({x}).eager_reason.find("draws_from_states"), std::string::npos)
      << fast.explain({x}).eager_reason;
}

TEST(Checkpoints, OfACustomFunctionDrawTheirNumbersAgain) { expect_eagers(checkpointed, true); }
TEST(Checkpoints, InTheForwardDrawTheirNumbersAgain) { expect_eagers(drawn_twice, true); }
TEST(Checkpoints, FromAStateThatNothingOfTheForwardDrewFromAreLeftToEager) {
  expect_eagers(draws_later, false);
}

}  // namespace tandem
