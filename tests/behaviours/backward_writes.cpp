// Rows B25 to B28: backwards that write what the forward was given.
#include "behaviours/typed.h"

namespace tandem::behaviours {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

enum class Writes : int64_t { Doubles, Zeroes, AddsTheGradient, AddsOne };

/// y = a * 2; its backward writes `state`.
struct WritesInBackward : Function<WritesInBackward> {
  static at::Tensor forward(AutogradContext* context, at::Tensor a, at::Tensor state, int64_t how) {
    context->save_for_backward({state});
    context->saved_data["how"] = how;
    return a * 2;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    at::Tensor state = context->get_saved_variables()[0];
    torch::NoGradGuard no_grad;
    switch (Writes(context->saved_data["how"].toInt())) {
      case Writes::Doubles:
        state.mul_(2);
        break;
      case Writes::Zeroes:
        state.zero_();
        break;
      case Writes::AddsTheGradient:
        state.add_(gradients[0]);
        break;
      case Writes::AddsOne:
        state.add_(1);
        break;
    }
    return {gradients[0] * 2, at::Tensor(), at::Tensor()};
  }
};

Callable writes_in_backward(Writes how) {
  return [how](const Tensors& in) {
    return Tensors{in[0] * WritesInBackward::apply(in[0], in[1], int64_t(how))};
  };
}

/// The forward writes a third input besides.
Callable writes_in_both(Writes how) {
  return [how](const Tensors& in) {
    in[2].add_(5);
    return Tensors{in[0] * WritesInBackward::apply(in[0], in[1], int64_t(how))};
  };
}

struct DoublesItsGradient : Function<DoublesItsGradient> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return x.clone(); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0].mul_(2)}; }
};

void forward_then_backward() {
  for (bool keep : {true, false}) {
    Callable fn = [](const Tensors& in) {
      in[1].add_(1);
      return Tensors{WritesInBackward::apply(in[0], in[1], int64_t(Writes::AddsOne))};
    };
    Compiled fast(fn, {.keep_input_mutations = keep});
    at::Tensor a = leaf({3}), state = torch::zeros(3), y = fast({a, state})[0];
    EXPECT_TRUE(same_values(state, torch::full({3}, 1.f)));
    y.sum().backward();
    EXPECT_TRUE(same_values(state, torch::full({3}, 2.f)));
    EXPECT_TRUE(same_values(a.grad(), torch::full({3}, 2.f)));
  }
}

void wrapper_forward_then_backward() {
  auto fn = [](const Pair& x, const Pair& state) {
    auto apply = [](const at::Tensor& t, const at::Tensor& s) {
      s.add_(1);
      return WritesInBackward::apply(t, s, int64_t(Writes::AddsOne));
    };
    return Pair{apply(x.a, state.a), apply(x.b, state.b)};
  };
  for (bool keep : {true, false}) {
    Pair x{leaf({3}), leaf({3})}, state{torch::zeros(3), torch::zeros(3)},
        y = compile(fn, {.keep_input_mutations = keep})(x, state);
    for (const at::Tensor& s : tensors_of(state)) EXPECT_TRUE(same_values(s, torch::full({3}, 1.f)));
    backward(y, {torch::ones(3), torch::ones(3)});
    for (const at::Tensor& s : tensors_of(state)) EXPECT_TRUE(same_values(s, torch::full({3}, 2.f)));
    for (const at::Tensor& g : tensors_of(grad_of(x))) EXPECT_TRUE(same_values(g, torch::full({3}, 2.f)));
  }
}

const Expectations one_backward = {.compiled = false, .differentiate_written = false};
const auto rg_and_not = leaves({{3}, {3}, {3}}, {true, false, false});

const bool backward_writes_versions = give_versions<WritesInBackward, DoublesItsGradient>();
const bool backward_writes_rows = add_rows({
    {"B25",
     {{writes_in_backward(Writes::Doubles),
       {leaves({{3}, {3}}, {true, false}), leaves({{3}, {3}}, {true, true})},
       uncompiled()}}},
    {"B26",
     {{writes_in_backward(Writes::Zeroes), {rg_and_not}, uncompiled()},
      {writes_in_backward(Writes::AddsTheGradient), {rg_and_not}, uncompiled()},
      {writes_in_backward(Writes::Doubles), {leaves({{3}, {3}}, {true, true})}, uncompiled()},
      {writes_in_both(Writes::Zeroes), {rg_and_not}, uncompiled()},
      {writes_in_both(Writes::AddsTheGradient), {rg_and_not}, uncompiled()}}},
    {.id = "B27",
     .check =
         [] {
           forward_then_backward();
           wrapper_forward_then_backward();
         }},
    {"B28",
     {{[](const Tensors& in) { return Tensors{DoublesItsGradient::apply(in[0].sin()) * 3}; },
       {leaves({{3}}, {true})},
       uncompiled()},
      {[](const Tensors& in) { return Tensors{DoublesItsGradient::apply(in[0])}; },
       {leaves({{3}}, {true}), non_leaves({{3}}, {true})},
       uncompiled(one_backward)}}},
});

}  // namespace
}  // namespace tandem::behaviours
