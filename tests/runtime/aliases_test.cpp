// Outputs that are views, beyond the rows of the table of behaviours.
#include "runtime/compare.h"

namespace tandem {
namespace {

TEST(OutputViews, AreOfARealWriteLaterOn) {
  for (bool keep : {true, false}) {
    Compiled fast(
        [](const Tensors& in) {
          at::Tensor b = in[0] + 1;
          return Tensors{b, b.slice(0, 1), in[0].slice(0, 1)};
        },
        {.keep_input_mutations = keep});
    at::Tensor a = torch::zeros(3);
    Tensors out = fast({a});
    out[0].add_(1);
    a.add_(5);
    EXPECT_TRUE(test::same_values(out[1], torch::full(2, 2.f)));
    EXPECT_TRUE(test::same_values(out[2], torch::full(2, 5.f)));
  }
}

using Function = std::function<Tensors(const Tensors&)>;
using ViewOf = std::function<at::Tensor(const at::Tensor&)>;

const std::vector<std::pair<const char*, ViewOf>> sole_views = {
    {"view", [](const at::Tensor& y) { return y.view({4, 2, 15}); }},
    {"flatten", [](const at::Tensor& y) { return y.flatten(); }},
    {"transpose", [](const at::Tensor& y) { return y.transpose(0, 1); }},
    {"permute of a view", [](const at::Tensor& y) { return y.view({8, 3, 5}).permute({2, 0, 1}); }},
    {"unsqueeze", [](const at::Tensor& y) { return y.unsqueeze(1); }},
    {"squeeze of a view", [](const at::Tensor& y) { return y.view({8, 1, 15}).squeeze(1); }}};

/// The view is computed with three times, and the caller has it as well: four gradients meet in it.
Function uses_its_view(const ViewOf& view) {
  return [view](const Tensors& in) {
    const at::Tensor v = view(in[0].matmul(in[1]));
    return Tensors{v, (v * 3).sum(-1), (v * v).sum(-1), v * v.detach()};
  };
}

template <class Outcome>
void expect_alike_for_all_sole_views(const Outcome& outcome) {
  for (const auto& [name, view] : sole_views) {
    const Function program = uses_its_view(view);
    Compiled fast(program, {.watched_calls = false, .must_compile = true});
    const Tensors want = outcome(program);
    for (int call = 0; call < 2; ++call) {
      const Tensors got = outcome([&](const Tensors& in) { return fast(in); });
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(test::same_values(got[i], want[i])) << name << ", " << i << ", call " << call;
    }
  }
}

TEST(OutputViews, WhereAViewIsAllThatIsReturnedGradientsMeetInItAsInEager) {
  expect_alike_for_all_sole_views([](const Function& f) {
    torch::manual_seed(4);
    at::Tensor a = leaf({8, 7}), b = leaf({7, 15}), loss = torch::zeros({});
    for (const at::Tensor& out : f({a, b})) loss = loss + (out * torch::randn_like(out)).sin().sum();
    return torch::autograd::grad({loss}, {a, b});
  });
}

/// Numbers whose sums and products are exact.
at::Tensor small_numbers(at::IntArrayRef sizes) {
  return torch::randint(-1, 2, sizes).to(torch::kDouble).requires_grad_();
}

TEST(OutputViews, ThatAreAllThatIsReturnedAreDifferentiatedTwice) {
  expect_alike_for_all_sole_views([](const Function& f) {
    torch::manual_seed(4);
    at::Tensor a = small_numbers({8, 7}), b = small_numbers({7, 15}), loss = torch::zeros({});
    for (const at::Tensor& out : f({a, b})) loss = loss + out.square().sum();
    const Tensors first =
        torch::autograd::grad({loss}, {a, b}, {}, /*retain_graph=*/true, /*create_graph=*/true);
    return torch::autograd::grad({(first[0].square().sum() + first[1].square().sum())}, {a, b});
  });
}

TEST(OutputViews, ThatAreAllThatIsReturnedMayBeWrittenLaterOn) {
  expect_alike_for_all_sole_views([](const Function& f) {
    torch::manual_seed(4);
    at::Tensor a = small_numbers({8, 7}), b = small_numbers({7, 15});
    Tensors out = f({a, b});
    out[0].narrow(0, 0, 1).mul_(4);
    return torch::autograd::grad({out[0].square().sum() + at::Tensor(out[0]._base()).sum() + out[1].sum()},
                                 {a, b});
  });
}

}  // namespace
}  // namespace tandem
