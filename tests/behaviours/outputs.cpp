// Rows D: outputs that alias inputs, intermediates or each other.
#include "behaviours/row.h"

namespace tandem::behaviours {
namespace {

using test::contains;
using test::message;

const Expectations hidden_aliases = {.compiled = false, .same_bases = false};

/// unbind of an intermediate, with that and a view of it behind as many as are asked for.
Callable unbind_and(bool itself, bool view) {
  return [=](const Tensors& in) {
    at::Tensor out = in[0] * 3;
    Tensors all = out.unbind();
    if (itself) all.push_back(out);
    if (view) all.push_back(out.view({-1}));
    return all;
  };
}

/// What the leaf's gradient is after the last output was written and differentiated.
at::Tensor gradient_after_a_write(const Callable& fn) {
  torch::manual_seed(3);
  at::Tensor a = leaf({2, 3});
  Tensors out = fn({a + 1});
  out.back().mul_(5);
  out.back().sum().backward();
  return a.grad();
}

void last_outputs_are_written() {
  for (int which = 1; which < 4; ++which) {
    Callable fn = unbind_and(which & 1, which & 2);
    Compiled fast(fn, {.debug_asserts = true});
    EXPECT_TRUE(same_values(gradient_after_a_write([&](const Tensors& in) { return fast(in); }),
                            gradient_after_a_write(fn)))
        << which;
  }
}

Tensors unbind(const Tensors& in) { return in[0].unbind(); }

/// The error of writing an output of unbind, and of asking for its node after the input was written, plainly
/// or through a detached alias.
std::vector<std::string> errors_of_many_views(const Callable& fn) {
  auto fresh = [] { return leaf({2, 3}) + 1; };
  std::vector<std::string> errors;
  at::Tensor a = fresh();
  Tensors out = fn({a});
  errors.push_back(message([&] { out[0].mul_(2); }));
  for (bool detached : {false, true}) {
    a = fresh();
    out = fn({a});
    (detached ? a.detach() : a).mul_(2);
    errors.push_back(message([&] { out[0].grad_fn(); }));
  }
  return errors;
}

void many_views_refuse_writes() {
  Compiled fast(unbind, {.debug_asserts = true});
  std::vector<std::string> want = errors_of_many_views(unbind),
                           got = errors_of_many_views([&](const Tensors& in) { return fast(in); });
  EXPECT_TRUE(contains(want[0], "multiple views")) << want[0];
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(contains(got[i], "multiple views"), contains(want[i], "multiple views"))
        << i << ": " << got[i] << "\neager: " << want[i];
}

Tensors views_of_everything(const Tensors& in) {
  at::Tensor middle = in[0] * 2;
  return {in[0].view({-1}), in[0].t(),         in[0].select(0, 1),    in[0].expand({3, 2, 2}),
          middle,           middle.diagonal(), middle.t().slice(0, 1)};
}

void views_are_of_their_own_kind() {
  Compiled fast(views_of_everything, {});
  at::Tensor a = leaf({2, 2}) + 1;
  Tensors got = fast({a}), want = views_of_everything({a});
  for (size_t i : {0, 1, 2, 3, 5, 6}) {
    EXPECT_TRUE(got[i].is_view());
    EXPECT_EQ(got[i].grad_fn()->name(), want[i].grad_fn()->name()) << i;
  }
}

struct HalfGradient : torch::autograd::Function<HalfGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext*, at::Tensor x) { return x; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * 0.5};
  }
};

const auto one_leaf = both([](bool rg) { return leaves({{3}}, {rg}); });
const Expectations of_its_own = {.write_outputs = false, .same_bases = false};

const bool outputs_versions = give_versions<HalfGradient>();
const bool outputs_rows = add_rows({
    {"D1",
     {{[](const Tensors& in) { return Tensors{in[0].view({-1})}; }, squares(1)},
      {[](const Tensors& in) {
         return Tensors{in[0].t().select(0, 1), in[0].detach(), in[0].expand({3, 2, 2})};
       },
       squares(1),
       {.write_outputs = false}}}},
    {"D2",
     {{[](const Tensors& in) {
         in[0].mul_(2);
         in[2].mul_(3);
         return Tensors{in[1].view({4}), in[2].view({4})};
       },
       squares(3)}}},
    {"D4",
     {{[](const Tensors& in) {
         in[0].add_(1);
         return Tensors{in[0].view({-1})};
       },
       squares(1)},
      {[](const Tensors& in) {
         in[1].transpose_(0, 1);
         in[2].add_(1);
         return Tensors{in[3] + 1, in[1].diagonal(), in[0] + in[2]};
       },
       squares(4)}}},
    {"D5",
     {{[](const Tensors& in) {
         at::Tensor b = in[0] * 2;
         return Tensors{b, b.view({-1})};
       },
       squares(1)}}},
    {"D6",
     {{[](const Tensors& in) { return Tensors{(in[0] * 2).view({-1})}; }, squares(1), {.same_bases = false}},
      {[](const Tensors& in) { return Tensors{(in[0] * 2).t()[0]}; }, squares(1), {.same_bases = false}}}},
    {"D7",
     {{[](const Tensors& in) {
         at::Tensor out = in[0] * 3;
         return Tensors{out.view({-1}), out.view({-1})};
       },
       squares(1)}}},
    {"D8",
     {{[](const Tensors& in) {
         at::Tensor out = in[0] * 3;
         return Tensors{out, out.view({-1})};
       },
       squares(1)},
      {[](const Tensors& in) {
         at::Tensor out = in[0] * 3;
         return Tensors{out.view({-1}), out};
       },
       squares(1)},
      {[](const Tensors& in) {
         at::Tensor out = in[0] * 3;
         return Tensors{out, out.view({-1}), out, out.view({-1})};
       },
       squares(1)}}},
    {"D10",
     {{[](const Tensors& in) {
         at::Tensor one = in[0] * 3, two = in[0] * 4;
         return Tensors{one.view({-1}), two.t(), one.t()};
       },
       squares(1),
       {.same_bases = false}}}},
    {"D11",
     {{[](const Tensors& in) {
         at::Tensor out = in[0] * 3;
         return Tensors{out.view({-1}), in[1] + 1};
       },
       both([](bool rg) { return non_leaves({{2, 2}, {2, 2}}, {false, rg}); })}}},
    {"D14",
     {{[](const Tensors& in) {
         in[0].transpose_(0, 1);
         at::Tensor tmp = in[0] * 2;
         return Tensors{tmp.squeeze(), tmp.transpose(0, 1), in[0].unsqueeze(0)};
       },
       squares(1)}}},
    {"D15",
     {{unbind, {leaves({{2, 3}}, {true}), leaves({{2, 3}}, {false})}, hidden_aliases},
      {[](const Tensors& in) {
         Tensors out = in[0].unbind();
         out.push_back(in[0].view({-1}));
         return out;
       },
       {non_leaves({{2, 3}}, {true})},
       hidden_aliases}}},
    {.id = "D16", .check = many_views_refuse_writes},
    {.id = "D17",
     .cases = {{unbind_and(false, false), squares(1), hidden_aliases},
               {unbind_and(true, false), squares(1), hidden_aliases},
               {unbind_and(false, true), squares(1), hidden_aliases},
               {unbind_and(true, true), squares(1), hidden_aliases}},
     .check = last_outputs_are_written},
    {.id = "D18", .check = views_are_of_their_own_kind, .waits_for = "changing sizes"},
    {"D19",
     {{[](const Tensors& in) { return Tensors{HalfGradient::apply(in[0])}; }, one_leaf, of_its_own},
      {[](const Tensors& in) { return Tensors{HalfGradient::apply(in[0]) * 2}; }, one_leaf},
      {[](const Tensors& in) { return Tensors{HalfGradient::apply(in[0] * 3)}; }, one_leaf, of_its_own},
      {[](const Tensors& in) { return Tensors{HalfGradient::apply(in[0]).sin(), in[0] * 2}; },
       both([](bool rg) { return non_leaves({{3}}, {rg}); })}}},
    {"D21",
     {{[](const Tensors& in) { return Tensors{in[0].view({2, 3}).t()}; },
       {leaves({{6}}, {true})},
       {.write_outputs = false}},
      {[](const Tensors& in) { return Tensors{(in[0] * 2).view({2, 3}).t()}; },
       {leaves({{6}}, {true})},
       {.same_bases = false}}}},
});

}  // namespace
}  // namespace tandem::behaviours
