// Rows K: types made of several tensors.
#include "behaviours/typed.h"
#include "frontend/refused_program.h"

namespace tandem::behaviours {
namespace {

using test::contains;
using test::Jagged;
using test::message;
using test::Twice;

template <class W>
W ones_like(const W& wrapper) {
  return map_tensors(wrapper, [](const at::Tensor& t) { return at::ones_like(t); });
}
size_t count_nodes(const Graph& graph, const std::string& name) {
  size_t count = 0;
  for (const Node& node : graph.nodes()) count += contains(to_string(graph, node), name);
  return count;
}

/// Tensors that `view` makes of others, which are no leaves.
std::vector<Maker> viewed(size_t tensors, at::Tensor (*view)(const at::Tensor&)) {
  return both([=](bool rg) -> Maker {
    return [=] {
      Scene scene =
          non_leaves(std::vector<std::vector<int64_t>>(tensors, {4, 4}), std::vector<bool>(tensors, rg))();
      scene.others = scene.arguments;
      for (at::Tensor& argument : scene.arguments) argument = view(argument);
      return scene;
    };
  });
}
std::vector<Maker> transposed(size_t tensors) {
  return viewed(tensors, [](const at::Tensor& t) { return t.t(); });
}
std::vector<Maker> with_gaps(size_t tensors) {
  return viewed(tensors, [](const at::Tensor& t) { return t.slice(1, 1, 4, 2).slice(0, 0, 2); });
}
template <class F>
void hold_in_every_layout(const F& fn, const Expectations& expect_with_gaps = {}) {
  hold_typed(fn, one_pair, squares(2));
  hold_typed(fn, one_pair, transposed(2));
  hold_typed(fn, one_pair, with_gaps(2), expect_with_gaps);
}

// ---- K1

void inner_tensors_are_what_the_graph_sees() {
  auto mixed = [](const Pair& a, const at::Tensor& b) { return a * 6.0 + b / 2; };
  auto pairs = [](const Pair& a, const Pair& b) { return a * 6.0 + b * 0.5; };
  hold_typed(mixed, [](const Tensors& in) { return std::make_tuple(Pair{in[0], in[1]}, in[2]); }, squares(3));
  hold_typed(pairs, two_pairs, squares(4));

  Explanation e = compile(mixed).explain({leaf({2, 2}), leaf({2, 2})}, leaf({2, 2}));
  EXPECT_EQ(e.contract.inputs.size(), 3u);
  EXPECT_EQ(e.contract.outputs.size(), 2u);
  EXPECT_EQ(count_nodes(e.forward, "aten::mul"), 2u) << e.forward.to_string();
  EXPECT_EQ(count_nodes(e.forward, "aten::add"), 2u) << e.forward.to_string();
  EXPECT_EQ(e.backward.outputs().size(), 3u) << e.backward.to_string();

  Pair a{leaf({2, 2}), leaf({2, 2})}, b{leaf({2, 2}), leaf({2, 2})};
  EXPECT_EQ(compile(pairs).explain(a, b).backward.outputs().size(), 4u);
  Pair y = compile(pairs)(a, b);
  backward(y, {torch::ones({2, 2}), torch::full({2, 2}, 2.f)});
  Pair of_a = grad_of(a), of_b = grad_of(b);
  EXPECT_TRUE(same_values(of_a.a, torch::full({2, 2}, 6.f)));
  EXPECT_TRUE(same_values(of_a.b, torch::full({2, 2}, 12.f)));
  EXPECT_TRUE(same_values(of_b.b, torch::full({2, 2}, 1.f)));
}

// ---- K2

void views_of_wrappers_are_rebuilt() {
  auto fn = [](const at::Tensor& a, const Pair& b) {
    return std::make_tuple(map_tensors(b, [](const at::Tensor& t) { return t.view(t.sizes()); }), b * a);
  };
  hold_typed(fn, tensor_and_pair, squares(3));
  hold_typed([](const Pair& b) { return std::make_tuple(b, Pair{b.b, b.a.t()}); }, one_pair, squares(2));
}

// ---- K4

void metadata_of_inner_tensors_is_written() {
  hold_typed(
      [](const at::Tensor& a, const Pair& b) {
        a.t_();
        b.a.unsqueeze_(0);
        b.b.unsqueeze_(0);
        return Pair{b.a * a, b.b * 2};
      },
      tensor_and_pair, squares(3));
  hold_in_every_layout([](const Pair& x) {
    x.a.transpose_(0, 1);
    x.b.transpose_(0, 1);
    return x * 2.0;
  });
  hold_in_every_layout(
      [](const Pair& x) {
        x.a.mul_(2);
        x.a.t_();
        x.b.unsqueeze_(0);
        x.b.add_(1);
        return x * 3.0;
      },
      uncompiled());
}

// ---- K5

void inner_tensors_are_written() {
  auto write = [](const Pair& x) {
    x.a.mul_(2);
    x.b.add_(x.a);
    return x * 3.0;
  };
  hold_in_every_layout(write);
  auto columns = [](at::Tensor x) { return Tensors{x.slice(1, 0, 2), x.slice(1, 2, 4)}; };
  hold_typed(write, one_pair, both_cut_from({4, 4}, columns), uncompiled());
  hold_typed(
      [](const Pair& x, const Pair& y) {
        x.a.mul_(2);
        y.b.mul_(3);
        return x + y;
      },
      two_pairs,
      both_cut_from({4, 8},
                    [](at::Tensor x) {
                      return Tensors{x.slice(1, 0, 2), x.slice(1, 2, 4), x.slice(1, 4, 6), x.slice(1, 6, 8)};
                    }),
      uncompiled());
}

// ---- K6, K9

using Kinds = std::variant<at::Tensor, Pair, std::pair<Pair, Pair>>;

Kinds twice(const Kinds& x) {
  return std::visit(
      [](const auto& held) { return Kinds(map_tensors(held, [](const at::Tensor& t) { return t * 2; })); },
      x);
}
/// What backward says to a gradient of another kind; the right kind is taken afterwards.
std::string refused(const Kinds& value, const Kinds& gradient) {
  Kinds y = compile(twice)(value);
  std::string sentence = message<ContractError>([&] { backward(y, gradient); });
  EXPECT_FALSE(tensors_of(grad_of(value))[0].defined());
  backward(y, ones_like(y));
  for (const at::Tensor& g : tensors_of(grad_of(value))) EXPECT_TRUE(same_values(g, torch::full({3}, 2.f)));
  return sentence;
}

const char* const pair_paths = "consists of tandem::test::Pair.a, tandem::test::Pair.b, and it";
Pair ones() { return {torch::ones(3), torch::ones(3)}; }

void gradients_of_another_kind_are_refused() {
  std::string plain = refused(Pair{leaf({3}), leaf({3})}, torch::ones(3)),
              wrapped = refused(leaf({3}), ones());
  EXPECT_TRUE(contains(plain, pair_paths)) << plain;
  EXPECT_TRUE(contains(wrapped, "consists of at::Tensor, and it consists of tandem::test::Pair.a"))
      << wrapped;
}

template <class W, class G>
concept CanGoBackward = requires(W wrapper, G gradient) { tandem::backward(wrapper, gradient); };
static_assert(CanGoBackward<Pair, Pair> && !CanGoBackward<Pair, at::Tensor> &&
              !CanGoBackward<at::Tensor, Pair> && !CanGoBackward<Pair, std::pair<Pair, Pair>>);

void nested_gradients_of_single_wrappers_are_refused() {
  std::string nested = refused(Pair{leaf({3}), leaf({3})}, std::pair(ones(), ones()));
  EXPECT_TRUE(contains(nested, pair_paths) && contains(nested, "[1].b")) << nested;
}

// ---- K8

/// Nested wrappers beside each other, with constants on both levels.
std::tuple<Nested, Nested> two_nested(const Tensors& in) {
  return {Nested{{in[0], in[1]}, {in[2], 2.5}, "mean"}, Nested{{in[3], in[4]}, {in[5], 3}, "sum"}};
}

void nesting_and_constants_are_kept() {
  auto fn = [](const Nested& x, const Nested& y) {
    return std::make_pair(x * y, std::vector<Nested>{y * x});
  };
  hold_typed(fn, two_nested, squares(6));
  auto [x, y] =
      two_nested(leaves(std::vector<std::vector<int64_t>>(6, {3}), std::vector<bool>(6, true))().arguments);
  auto fast = compile(fn);
  for (double scale : {2.5, 4.0}) {
    x.scaled.scale = scale;
    auto [product, list] = fast(x, y);
    EXPECT_EQ(product.scaled.scale, scale);
    EXPECT_EQ(product.kind, "mean");
    EXPECT_EQ(list[0].scaled.scale, 3);
    EXPECT_EQ(list[0].kind, "sum");
    x.scaled.value.mutable_grad() = at::Tensor();
    backward(product, ones_like(product));
    Nested gradient = grad_of(x);
    EXPECT_EQ(gradient.kind, "mean");
    EXPECT_EQ(gradient.scaled.scale, scale);
    EXPECT_TRUE(same_values(gradient.scaled.value, y.scaled.value.detach() * scale));
  }
}

// ---- K10

Maker channels_last(size_t tensors) {
  return [=] {
    Scene scene;
    for (size_t i = 0; i < tensors; ++i)
      scene.arguments.push_back(
          torch::randn({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_());
    scene.leaves = scene.arguments;
    return scene;
  };
}

template <class F, class Gather>
void expect_channels_last_gradients(const F& fn, const Gather& gather, size_t tensors) {
  hold_typed(fn, gather, {channels_last(tensors)});
  Scene scene = channels_last(tensors)();
  auto fast = compile(fn);
  auto arguments = gather(scene.arguments);
  auto y = std::apply(fast, arguments);
  backward(y, ones_like(y));
  for (const at::Tensor& argument : scene.arguments)
    EXPECT_TRUE(argument.grad().is_contiguous(at::MemoryFormat::ChannelsLast));
  Explanation e = std::apply([&](const auto&... given) { return fast.explain(given...); }, arguments);
  EXPECT_EQ(e.backward.outputs().size(), tensors);
  for (const char* copies : {"clone", "contiguous", "copy"})
    EXPECT_EQ(count_nodes(e.backward, copies), 0u) << e.backward.to_string();
}

void layouts_of_gradients_are_kept() {
  expect_channels_last_gradients([](const Pair& x) { return x * x; }, one_pair, 2);
  expect_channels_last_gradients(
      [](const std::pair<Pair, Pair>& x) { return std::make_pair(x.first * x.second, x.second * 2.0); },
      [](const Tensors& in) {
        return std::make_tuple(std::make_pair(Pair{in[0], in[1]}, Pair{in[2], in[3]}));
      },
      4);
}

void missing_fields_have_no_gradient() {
  auto fn = [](const Jagged& x) { return Jagged{x.values * (x.lengths ? 3 : 2), x.offsets, std::nullopt}; };
  hold_typed(fn, [](const Tensors& in) { return std::make_tuple(Jagged{in[0], in[1], std::nullopt}); },
             {leaves({{5}, {3}}, {true, false})});
  Jagged x{leaf({5}), torch::tensor({0, 2, 5}), std::nullopt}, y = compile(fn)(x);
  EXPECT_TRUE(y.offsets->is_same(*x.offsets));
  backward(y, ones_like(y));
  Jagged gradient = grad_of(x);
  EXPECT_TRUE(same_values(gradient.values, torch::full({5}, 2.f)));
  EXPECT_TRUE(gradient.offsets && !gradient.offsets->defined());
  EXPECT_FALSE(gradient.lengths);
}

// ---- K13

/// A layer whose weights are nested wrappers: plain fields of the module, or parameters.
struct Layer : torch::nn::Module {
  std::vector<Nested> weight;
  explicit Layer(bool registered) {
    torch::manual_seed(3);
    for (int i = 0; i < 2; ++i) weight.push_back({{leaf({3}), leaf({3})}, {leaf({3}), 2.0 + i}, "mean"});
    if (registered) register_parameters(*this, "weight", weight);
  }
  Pair forward(const Pair& x) {
    Pair y = x;
    for (const Nested& w : weight) y = y * w.inner * w.scaled.scale + Twice(w.scaled.value).value();
    return y;
  }
};

void wrappers_are_parameters() {
  auto run = [](auto&& forward, const Layer& layer, bool frozen) {
    torch::manual_seed(4);
    Pair x{leaf({2, 3}), leaf({2, 3})};
    for (const Nested& w : layer.weight) w.inner.b.requires_grad_(!frozen);
    Pair y = forward(x);
    backward(y, ones_like(y));
    Tensors all = tensors_of(y);
    for (const Tensors& more : {tensors_of(grad_of(x)), tensors_of(grad_of(layer.weight))})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  for (bool frozen : {false, true}) {
    Layer before(false), after(true);
    auto compiled = std::make_shared<Layer>(true);
    EXPECT_TRUE(before.parameters().empty());
    EXPECT_TRUE(compiled->named_parameters().contains("weight.1.inner.b"));
    Tensors want = run([&](const Pair& x) { return before.forward(x); }, before, frozen),
            plain = run([&](const Pair& x) { return after.forward(x); }, after, frozen);
    Tensors got = run(compile(compiled, {.debug_asserts = true}), *compiled, frozen);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(same_tensor(plain[i], want[i])) << i;
      EXPECT_TRUE(same_tensor(got[i], want[i])) << i;
    }
  }
  torch::NoGradGuard no_grad;
  auto frozen = std::make_shared<Layer>(true);
  Pair x{torch::randn({2, 3}), torch::randn({2, 3})}, want = frozen->forward(x), got = compile(frozen)(x);
  EXPECT_TRUE(same_values(got.a, want.a) && same_values(got.b, want.b));
}

void tensors_are_made_on_the_way() {
  hold_typed([](const Twice& x) { return std::make_pair(x.value().tanh(), Twice(x.value() + 1)); },
             [](const Tensors& in) { return std::make_tuple(Twice(in[0])); }, squares(1));
  Explanation e = compile([](const Twice& x) { return x.value() + 1; }).explain(Twice(leaf({3})));
  EXPECT_EQ(count_nodes(e.forward, "aten::mul"), 1u) << e.forward.to_string();
}

// ---- O7, O17

void overlapping_wrappers_are_written() {
  auto fn = [](const Pair& x, const Pair& y) {
    x.a.add_(1);
    y.b.mul_(2);
    return x + y;
  };
  const Expectations expect = uncompiled({.together = false});
  hold_typed(fn, two_pairs,
             both_cut_from({2, 4}, [](at::Tensor x) { return Tensors{x[0], x[1], x[0], x[1]}; }), expect);
  hold_typed(fn, two_pairs,
             both_cut_from({2, 4}, [](at::Tensor x) { return Tensors{x[0], x[1], x[1], x[0]}; }), expect);
}

void a_class_that_does_not_say_how_it_is_made_does_not_compile() {
  std::string errors = test::refusal_of(R"(
    class Hidden { at::Tensor x; public: Hidden(); };
    void f(const Hidden& value, const Hidden& gradient) { tandem::backward(value, gradient); }
  )");
  EXPECT_TRUE(contains(errors,
                       "cannot be taken apart; use tensors, numbers, strings, enums, standard containers and "
                       "structs of them, or specialise tandem::Pack"))
      << errors;
}

const bool wrappers_rows = add_rows({
    {.id = "K1", .check = inner_tensors_are_what_the_graph_sees},
    {.id = "K2", .check = views_of_wrappers_are_rebuilt},
    {.id = "K4", .check = metadata_of_inner_tensors_is_written},
    {.id = "K5", .check = inner_tensors_are_written},
    {.id = "K6", .check = gradients_of_another_kind_are_refused},
    {.id = "K8", .check = nesting_and_constants_are_kept},
    {.id = "K9", .check = nested_gradients_of_single_wrappers_are_refused},
    {.id = "K10",
     .check =
         [] {
           layouts_of_gradients_are_kept();
           missing_fields_have_no_gradient();
         }},
    {.id = "K11", .waits_for = "changing sizes"},
    {.id = "K13",
     .check =
         [] {
           wrappers_are_parameters();
           tensors_are_made_on_the_way();
         }},
    {.id = "O7", .check = overlapping_wrappers_are_written, .does_not_apply = "such inputs need no refusal"},
    {.id = "O17", .check = a_class_that_does_not_say_how_it_is_made_does_not_compile},
});

}  // namespace
}  // namespace tandem::behaviours
