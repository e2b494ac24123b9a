// Rows E: requires_grad, detach, grad mode, tangents, saved tensors.
#include "behaviours/row.h"

namespace tandem::behaviours {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<Maker> every_combination() {
  std::vector<Maker> all;
  for (bool a : {false, true})
    for (bool b : {false, true}) all.push_back(leaves({{3}, {3}}, {a, b}));
  return all;
}

void another_requires_grad() {
  Callable fn = [](const Tensors& in) { return Tensors{in[0] * in[1].sin()}; };
  for (bool all_first : {true, false}) {
    Compiled fast(fn, {.debug_asserts = true});
    for (bool second : {all_first, !all_first}) {
      at::Tensor x = leaf({3}), y = leaf({3}, second);
      Tensors wanted = second ? Tensors{x, y} : Tensors{x};
      Tensors got = torch::autograd::grad({fast({x, y})[0].sum()}, wanted),
              want = torch::autograd::grad({fn({x, y})[0].sum()}, wanted);
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(same_values(got[i], want[i])) << i;
    }
  }
}

Tensors grad_enabled_inside(const Tensors& in) {
  torch::NoGradGuard no_grad;
  at::Tensor one = in[0].sin();
  torch::AutoGradMode enabled(true);
  return {one, in[0].cos()};
}

void called_without_grad_mode() {
  Compiled fast(grad_enabled_inside, {.debug_asserts = true});
  at::Tensor x = leaf({3});
  Tensors out;
  {
    torch::NoGradGuard outside;
    out = fast({x});
  }
  EXPECT_FALSE(out[0].requires_grad());
  EXPECT_TRUE(out[1].requires_grad());
  out[1].sum().backward();
  EXPECT_TRUE(same_values(x.grad(), grad_enabled_inside({x})[1].detach().zero_() - x.detach().sin()));
}

void a_gradient_is_differentiated() {
  Compiled fast([](const Tensors& in) { return Tensors{in[0] * in[0]}; }, {.debug_asserts = true});
  at::Tensor x = torch::tensor({1.0, 2.0, 3.0}).requires_grad_();
  at::Tensor first = torch::autograd::grad({fast({x})[0].sum()}, {x}, {}, true, true)[0];
  EXPECT_TRUE(at::equal(first, x * 2));
  EXPECT_TRUE(first.requires_grad() && first.grad_fn());
  first.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), torch::full({3}, 2.f)));
}

/// Compiles as eager does and notes the strides of what a backward is given behind what was saved.
Compiler noting_last_input(std::vector<int64_t>& strides, bool& alone) {
  return [&](const Graph& graph, const CompileContext& context) {
    auto code = find_backend("eager")->compile(graph, context);
    return boxed([&, code](Tensors&& in) {
      strides.assign(in.back().strides().begin(), in.back().strides().end());
      alone = in.back().use_count() == 1;
      return code->run(std::move(in));
    });
  };
}
const Compiler plainly = Compiler([](const Graph& graph, const CompileContext& context) {
  return find_backend("eager")->compile(graph, context);
});

void channels_last_tangents() {
  std::vector<int64_t> strides;
  bool alone = false;
  Compiled fast([](const Tensors& in) { return Tensors{torch::conv2d(in[0], in[1])}; },
                {.fw_compiler = plainly, .bw_compiler = noting_last_input(strides, alone)});
  at::Tensor x = torch::randn({2, 3, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(),
             w = leaf({4, 3, 3, 3});
  at::Tensor y = fast({x, w})[0];
  EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
  y.backward(torch::randn({2, 4, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(strides, y.strides().vec());
}

Tensors channels_last(const Tensors& in) {
  at::Tensor y = torch::conv2d(in[0], in[1]);
  return {y, y.view({2, 4, 9}), (in[0] * 2).transpose(1, 2)};
}

Maker images() {
  return [] {
    at::Tensor x = torch::randn({2, 3, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(),
               w = leaf({4, 3, 3, 3});
    return Scene{.arguments = {x, w}, .leaves = {x, w}};
  };
}

void tangents_of_every_layout() {
  Callable fn = [](const Tensors& in) { return Tensors{(in[0].t() + 1).exp()}; };
  Compiled fast(fn, {.debug_asserts = true});
  at::Tensor x = leaf({3, 4});
  const Tensors tangents = {torch::randn({4, 3}), torch::randn({3, 4}).t(), torch::ones({}).expand({4, 3}),
                            torch::randn({8, 6}).slice(0, 0, 8, 2).slice(1, 0, 6, 2),
                            torch::randn({4}).unsqueeze(1).expand({4, 3})};
  for (const at::Tensor& tangent : tangents)
    EXPECT_TRUE(same_values(torch::autograd::grad({fast({x})[0]}, {x}, {tangent})[0],
                            torch::autograd::grad({fn({x})[0]}, {x}, {tangent})[0]));
}

/// Whether every tensor that a call made is gone with its outputs.
void saved_pieces_make_no_cycle() {
  Compiled fast(
      [](const Tensors& in) {
        at::Tensor piece = (in[0] + in[0]).split(2)[1];
        return Tensors{piece, piece.unsqueeze(0) * in[1]};
      },
      {.debug_asserts = true});
  Tensors out = fast({leaf({4}), leaf({2})});
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> made;
  for (const at::Tensor& t : out)
    made.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(t.storage().unsafeGetStorageImpl()));
  c10::weak_intrusive_ptr<c10::TensorImpl> piece(out[0].getIntrusivePtr());
  EXPECT_FALSE(made[0].expired());
  out.clear();
  for (const auto& storage : made) EXPECT_TRUE(storage.expired());
  EXPECT_TRUE(piece.expired());
}

void tangents_have_one_owner() {
  std::vector<int64_t> strides;
  bool alone = false;
  Compiled fast([](const Tensors& in) { return Tensors{in[0].exp()}; },
                {.fw_compiler = plainly, .bw_compiler = noting_last_input(strides, alone)});
  (fast({leaf({3})})[0] * 2).sum().backward();
  EXPECT_TRUE(alone);
}

/// Keeps its output beside what is saved with a check of versions.
struct StashesItsOutput : torch::autograd::Function<StashesItsOutput> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x) {
    at::Tensor y = x.square();
    context->saved_data["x"] = x.detach();
    context->saved_data["y"] = y.detach();
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * 2 * context->saved_data["x"].toTensor() + 0 * context->saved_data["y"].toTensor()};
  }
};

Tensors halves_a_gradient(const Tensors& in) {
  at::Tensor y = in[0] * 2;
  y.register_hook([](at::Tensor gradient) { return gradient / 2; });
  return {y.sin() * in[0] + y, y.exp()};
}

/// The same in a checkpoint that is called twice.
Tensors halves_a_gradient_again(const Tensors& in) {
  at::Tensor y = in[0] * 2;
  auto body = [](const at::Tensor& inside) {
    inside.register_hook([](at::Tensor gradient) { return gradient / 2; });
    return inside.exp().sin() * inside;
  };
  return {checkpoint(body, y) * in[0] + y.cos(), in[0].exp()};
}

const bool gradients_versions = give_versions<StashesItsOutput>();
const bool gradients_rows = add_rows({
    {"E1",
     {{[](const Tensors& in) { return Tensors{in[0].cos(), in[1].cos(), in[0] * in[1]}; },
       every_combination()}}},
    {"E3",
     {{[](const Tensors& in) { return Tensors{in[0].detach(), in[1]}; }, {leaves({{3}, {3}}, {true, true})}},
      {[](const Tensors& in) { return Tensors{(in[0] + 1).detach(), in[1]}; },
       {leaves({{3}, {3}}, {true, true})}}}},
    {.id = "E4", .check = another_requires_grad},
    {.id = "E5",
     .cases = {{grad_enabled_inside, both([](bool rg) { return leaves({{3}}, {rg}); })}},
     .check = called_without_grad_mode},
    {.id = "E7", .check = a_gradient_is_differentiated},
    {.id = "E8",
     .cases = {{channels_last, {images()}, {.same_bases = false}}},
     .check = channels_last_tangents},
    {.id = "E9", .check = tangents_of_every_layout, .waits_for = "changing sizes"},
    {.id = "E11", .check = saved_pieces_make_no_cycle},
    {.id = "E13", .check = tangents_have_one_owner},
    {"E14",
     {{[](const Tensors& in) { return Tensors{StashesItsOutput::apply(in[0])}; },
       {leaves({{3}}, {true}), non_leaves({{3}}, {true})},
       {.compiled = false, .write_outputs = false}}}},
    {"E15",
     {{halves_a_gradient, {leaves({{3}}, {true}), non_leaves({{3}}, {true})}, {}, false},
      {halves_a_gradient_again, {leaves({{3}}, {true}), non_leaves({{3}}, {true})}, {}, false}}},
    {.id = "E16", .waits_for = "graph hooks"},
});

}  // namespace
}  // namespace tandem::behaviours
