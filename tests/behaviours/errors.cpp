// Rows O: what must be refused, or be as in eager. O7 and O17 are with the wrappers.
#include "behaviours/row.h"

namespace tandem::behaviours {
namespace {

using test::contains;
using test::message;
using test::same_values;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Its backward does something to the saved input.
template <bool transposes>
struct ChangesWhatItSaved : torch::autograd::Function<ChangesWhatItSaved<transposes>> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x) {
    context->save_for_backward({x});
    return x * 2;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    at::Tensor x = context->get_saved_variables()[0];
    torch::NoGradGuard no_grad;
    if (transposes)
      x.t_();
    else
      x.mul_(2);
    return {gradients[0] * 2};
  }
};

/// What a call and its backward came to: an error, or the gradient and the input as they are afterwards.
struct Result {
  std::string failure;
  at::Tensor gradient, input;
};
Result differentiate(const Callable& fn, bool create_graph) {
  torch::manual_seed(5);
  Result result;
  result.input = leaf({2, 3});
  result.failure = message([&] {
    result.gradient = torch::autograd::grad({fn({result.input})[0].sum()}, {result.input}, {}, create_graph,
                                            create_graph)[0];
  });
  return result;
}

/// Refused, or as in eager.
void expect_refused_or_as_in_eager(const Callable& fn, bool create_graph) {
  Compiled fast(fn, {});
  Result want = differentiate(fn, create_graph),
         got = differentiate([&](const Tensors& in) { return fast(in); }, create_graph);
  if (!got.failure.empty()) return;
  EXPECT_EQ(want.failure, "");
  EXPECT_TRUE(same_values(got.gradient.detach(), want.gradient.detach()));
  EXPECT_TRUE(same_values(got.input.detach(), want.input.detach()));
}

/// Two views of one memory whose recorded bases are different tensors, or of which one has none.
std::vector<Maker> different_bases() {
  auto make = [](bool one_without) -> Maker {
    return [=] {
      at::Tensor x = torch::randn({2, 2}), other = x.detach();
      return Scene{.arguments = {x.view({4}), one_without ? other : other.view({4})}, .others = {x}};
    };
  };
  return {make(false), make(true)};
}

Tensors through_csr(const Tensors& in) {
  return {at::sparse_csr_tensor(torch::tensor({0, 1, 2}), torch::tensor({0, 1}), in[0], {2, 2},
                                in[0].options().layout(at::kSparseCsr))
              .to_dense()};
}

void csr_is_refused_or_right() {
  Compiled fast(through_csr, {});
  at::Tensor a = leaf({2}), b = a.detach().clone().requires_grad_();
  std::string eager = message([&] { through_csr({a})[0].sum().backward(); }),
              ours = message([&] { fast({b})[0].sum().backward(); });
  EXPECT_TRUE(!ours.empty() || (eager.empty() && same_values(b.grad(), a.grad()))) << "eager: " << eager;
  remark(ours.empty() ? "as in eager" : "refused");
}

void sizes_changed_in_place_are_not_exported() {
  auto fn = [](at::Tensor x) {
    x.t_();
    return x.sum();
  };
  auto with_gradient = [](at::Tensor x, at::Tensor y) {
    x.t_();
    return (x * y).sum();
  };
  EXPECT_THROW(export_forward(fn, {torch::ones({2, 3})}), UnsupportedError);
  EXPECT_THROW(export_joint(with_gradient, {torch::ones({2, 2}), leaf({2, 2})}), UnsupportedError);
  struct Transposing : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return x.t_().sum(); }
  };
  EXPECT_THROW(export_forward(std::make_shared<Transposing>(), {torch::ones({2, 3})}), UnsupportedError);
}

void written_aliases_are_not_exported() {
  auto fn = [](at::Tensor a, at::Tensor b) {
    a.add_(1);
    return a + b;
  };
  at::Tensor x = torch::ones({2, 2});
  std::string twice = message<UnsupportedError>([&] { export_forward(fn, {x, x}); });
  std::string overlap = message<UnsupportedError>([&] { export_forward(fn, {x, x.view({2, 2})}); });
  EXPECT_TRUE(contains(twice, "twice")) << twice;
  EXPECT_TRUE(contains(overlap, "overlap")) << overlap;
  EXPECT_TRUE(same_values(x, torch::ones({2, 2})));
}

void only_the_loss_may_require_grad() {
  auto fn = [](at::Tensor x) { return std::vector<at::Tensor>{x.sum(), x * 2}; };
  EXPECT_TRUE(contains(message<UnsupportedError>([&] { export_joint(fn, {leaf({3})}, 0); }),
                       "output 1 requires grad"));
  EXPECT_THROW(export_joint(fn, {leaf({3})}, 1), UnsupportedError);
  EXPECT_THROW(export_joint(fn, {leaf({3})}, 2), ContractError);
  EXPECT_THROW(export_joint(fn, {leaf({3}, false)}, 0), UnsupportedError);
}

Tensors dropout_that_returns_its_input(const Tensors& in) {
  at::Tensor y = at::dropout(in[0], 0.1, false);
  y.add_(1);
  return {y};
}

void no_fake_is_left() {
  at::Tensor kept;
  Compiled leaking(
      [&](const Tensors& in) {
        kept = in[0] + 1;
        return Tensors{kept * 2};
      },
      {});
  leaking({torch::ones(3)});
  ASSERT_TRUE(kept.defined());
  EXPECT_TRUE(same_values(kept, torch::full(3, 2.f)));
  Compiled fast([&](const Tensors& in) { return Tensors{in[0] + kept}; }, {});
  EXPECT_TRUE(same_values(fast({torch::ones(3)})[0], torch::full(3, 3.f)));
  Compiled taking([](const Tensors& in) { return Tensors{in[0] + 1}; }, {});
  EXPECT_TRUE(same_values(taking({kept})[0], torch::full(3, 3.f)));
}

const bool errors_versions = give_versions<ChangesWhatItSaved<true>, ChangesWhatItSaved<false>>();
const bool errors_rows = add_rows({
    {.id = "O3",
     .check =
         [] {
           expect_refused_or_as_in_eager(
               [](const Tensors& in) { return Tensors{ChangesWhatItSaved<true>::apply(in[0])}; }, false);
         }},
    {.id = "O4",
     .check =
         [] {
           for (bool create_graph : {false, true})
             expect_refused_or_as_in_eager(
                 [](const Tensors& in) { return Tensors{in[0] * ChangesWhatItSaved<false>::apply(in[0])}; },
                 create_graph);
         }},
    {"O6",
     {{[](const Tensors& in) {
         in[0].add_(1);
         in[1].mul_(2);
         return Tensors{in[0] * 2};
       },
       different_bases(), uncompiled()}},
     {},
     "",
     "such inputs need no refusal: the function runs as it is"},
    {.id = "O8", .check = csr_is_refused_or_right},
    {.id = "O10", .check = sizes_changed_in_place_are_not_exported},
    {.id = "O11", .check = written_aliases_are_not_exported},
    {.id = "O12", .check = only_the_loss_may_require_grad},
    {.id = "O13",
     .does_not_apply = "a list as one input of an export does not pass the C++ compiler, and an export draws "
                       "libtorch's numbers"},
    {"O14", {{dropout_that_returns_its_input, squares(1)}}},
    {.id = "O15", .check = no_fake_is_left},
    {.id = "O16", .waits_for = "graph hooks"},
});

}  // namespace
}  // namespace tandem::behaviours
