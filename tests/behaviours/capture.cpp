// Rows A: capture and basic calls.
#include "behaviours/row.h"

namespace tandem::behaviours {
namespace {

using test::contains;
using test::counter;
using test::message;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class Fast, class Plain>
void expect_equal_on_a_matrix(const Fast& fast, const Plain& plain) {
  for (bool rg : {false, true}) {
    at::Tensor got_in = leaf({3, 3}, rg), want_in = got_in.detach().clone().requires_grad_(rg);
    at::Tensor got = fast(got_in), want = plain(want_in);
    EXPECT_TRUE(same_tensor(got, want));
    if (!rg) continue;
    got.sum().backward();
    want.sum().backward();
    EXPECT_TRUE(same_values(got_in.grad(), want_in.grad()));
  }
}

void numbers_and_absent_tensors() {
  for (bool keep : {true, false}) {
    Options options{.keep_input_mutations = keep, .debug_asserts = true};
    auto first = [](int64_t a, std::optional<at::Tensor> b, at::Tensor c) { return b ? c * *b : c * a; };
    auto last = [](at::Tensor c, std::optional<at::Tensor> b, int64_t a) { return b ? c * *b : c * a; };
    auto fast_first = compile(first, options);
    auto fast_last = compile(last, options);
    expect_equal_on_a_matrix([&](at::Tensor x) { return fast_first(3, std::nullopt, x); },
                             [](at::Tensor x) { return x * 3; });
    expect_equal_on_a_matrix([&](at::Tensor x) { return fast_last(x, std::nullopt, 4); },
                             [](at::Tensor x) { return x * 4; });
  }
}

void a_clone_is_no_input_write() {
  Explanation e = Compiled(
                      [](const Tensors& in) {
                        at::Tensor b = in[0].clone().squeeze(-1);
                        b.add_(1);
                        return Tensors{in[0] + b};
                      },
                      {})
                      .explain({leaf({3, 1})});
  EXPECT_EQ(e.contract.inputs[0].write, InputWrite::None);
}

Maker complex_layer() {
  return [] {
    auto parameter = [](at::IntArrayRef sizes) {
      return torch::randn(sizes, at::kComplexFloat).requires_grad_();
    };
    Tensors all = {parameter({1, 10, 10}), parameter({10, 10}), parameter({10})};
    return Scene{.arguments = all, .leaves = all};
  };
}

Maker bags() {
  return [] {
    at::Tensor table = leaf({100, 8});
    return Scene{.arguments = {table, torch::randint(100, {12}), torch::tensor({0, 4, 8})},
                 .leaves = {table}};
  };
}

struct Seen {
  Stage stage;
  size_t id;
};
Compiler noting(std::vector<Seen>& seen) {
  return [&seen](const Graph& graph, const CompileContext& context) {
    seen.push_back({context.stage, context.graph_id});
    return find_backend("eager")->compile(graph, context);
  };
}
Tensors twice_sine(const Tensors& in) { return {in[0].sin().sin()}; }

void the_backward_is_lazy() {
  std::vector<Seen> forward, backward;
  Compiled fast([](const Tensors& in) { return Tensors{in[0] * 2}; },
                {.fw_compiler = noting(forward), .bw_compiler = noting(backward)});
  at::Tensor x = leaf({});
  {
    torch::NoGradGuard no_grad;
    fast({x});
  }
  EXPECT_TRUE(backward.empty());
  at::Tensor y = fast({x})[0];
  EXPECT_EQ(forward.size(), 2u);
  EXPECT_TRUE(backward.empty());
  y.backward();
  EXPECT_EQ(backward.size(), 1u);
  EXPECT_TRUE(same_values(x.grad(), torch::full({}, 2.f)));
}

void calls_come_in_order() {
  std::vector<Seen> seen;
  Options options{
      .fw_compiler = noting(seen), .bw_compiler = noting(seen), .inference_compiler = noting(seen)};
  Compiled first(twice_sine, options), second(twice_sine, options);
  at::Tensor y = first({leaf({2})})[0];
  second({leaf({2}, false)});
  y.sum().backward();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].stage, Stage::Forward);
  EXPECT_EQ(seen[1].stage, Stage::Inference);
  EXPECT_EQ(seen[2].stage, Stage::Backward);
  EXPECT_EQ(seen[0].id, seen[2].id);
  EXPECT_NE(seen[0].id, seen[1].id);
}

void a_body_without_gradients() {
  std::vector<Seen> training, inference;
  Compiled quiet(
      [](const Tensors& in) {
        torch::NoGradGuard no_grad;
        return twice_sine(in);
      },
      {.fw_compiler = noting(training),
       .bw_compiler = noting(training),
       .inference_compiler = noting(inference)});
  EXPECT_FALSE(quiet({leaf({2})})[0].requires_grad());
  EXPECT_EQ(inference.size(), 1u);
  EXPECT_TRUE(training.empty());
}

void compilers_are_called_once() {
  std::vector<Seen> forward, backward, inference;
  Compiled fast(twice_sine, {.fw_compiler = noting(forward),
                             .bw_compiler = noting(backward),
                             .inference_compiler = noting(inference)});
  for (int i = 0; i < 2; ++i) fast({leaf({2}, false)});
  EXPECT_EQ(inference.size(), 1u);
  EXPECT_TRUE(forward.empty() && backward.empty());
  at::Tensor y = fast({leaf({2})})[0];
  EXPECT_TRUE(backward.empty());
  y.sum().backward();
  fast({leaf({2})})[0].sum().backward();
  EXPECT_EQ(backward.size(), 1u);
  EXPECT_EQ(forward.size(), 1u);
}

void boxed_code_may_empty_its_inputs() {
  bool alone = false;
  auto compiler = [&](const Graph& graph, const CompileContext&) {
    return boxed([&, graph](Tensors&& in) {
      Tensors own = std::move(in);
      in.clear();
      if (own[0].use_count() == 1) alone = true;
      return graph.run(std::move(own));
    });
  };
  Compiled fast([](const Tensors& in) { return Tensors{in[0].exp().sin() * in[1]}; },
                {.fw_compiler = compiler});
  at::Tensor a = leaf({2}), b = leaf({2}), y = fast({a, b})[0];
  EXPECT_TRUE(same_values(y, a.exp().sin() * b));
  EXPECT_TRUE(same_values(torch::autograd::grad({y.sum()}, {a})[0],
                          torch::autograd::grad({(a.exp().sin() * b).sum()}, {a})[0]));
  EXPECT_TRUE(alone) << "a value saved for the last backward has no owner but the compiled code";
}

void linear_in_inference_mode() {
  torch::nn::Linear model(3, 4);
  at::Tensor x = torch::randn({2, 3});
  Compiled fast([&](const Tensors& in) { return Tensors{model(in[0])}; }, {});
  {
    c10::InferenceMode inference;
    EXPECT_TRUE(at::equal(fast({x})[0], model(x)));
    EXPECT_EQ(fast.explain({x}).forward.outputs().size(), 1u);
  }
  Explanation training = fast.explain({leaf({2, 3})});
  EXPECT_EQ(training.saved_bytes, 0) << "the input and the weight are all that a backward needs";
}

struct CloneAddOne : torch::autograd::Function<CloneAddOne> {
  static at::Tensor forward(AutogradContext*, at::Tensor x) { return x.clone(); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0] + 1}; }
};

Tensors with_its_own_gradient(const Tensors& in) {
  at::Tensor y = in[0].exp();
  return {y, torch::autograd::grad({y}, {in[0]}, {}, true, true)[0]};
}

at::Tensor slope(const at::Tensor& y, const at::Tensor& x) {
  return torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
}

void relu_is_functional() {
  Graph graph = Compiled(
                    [](const Tensors& in) {
                      at::Tensor a = in[0] * 2;
                      a.relu_();
                      return Tensors{a};
                    },
                    {})
                    .explain({leaf({3}, false)})
                    .joint;
  std::map<std::string, int> calls;
  for (const Node& node : graph.nodes()) ++calls[node.op.schema().name()];
  EXPECT_EQ(calls["aten::relu"], 1);
  EXPECT_EQ(calls["aten::relu_"], 0);
}

void no_gradient_at_all() {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].argmax().to(at::kFloat)}; },
                {.debug_asserts = true});
  std::string failure = message([&] { fast({leaf({3})})[0].backward(); });
  EXPECT_TRUE(contains(failure, "does not require grad")) << failure;
  remark("every operator sample: test_sweep and the sweep over op_db");
}

const auto two_vectors = both([](bool rg) { return leaves({{3}, {3}}, {rg, false}); });
const auto scalar = std::vector<Maker>{leaves({{}}, {true})};

const bool capture_versions = give_versions<CloneAddOne>();
const bool capture_rows = add_rows({
    {.id = "A1", .check = numbers_and_absent_tensors},
    {"A2", {{[](const Tensors& in) { return Tensors{in[0] + in[1]}; }, two_vectors}}},
    {"A3", {{[](const Tensors& in) { return Tensors{in[0] + in[1], in[0] - in[1]}; }, two_vectors}}},
    {.id = "A4",
     .cases = {{[](const Tensors& in) {
                  at::Tensor b = in[0].clone().squeeze(-1);
                  b.add_(1);
                  return Tensors{in[0] + b};
                },
                both([](bool rg) { return leaves({{3, 1}}, {rg}); })}},
     .check = a_clone_is_no_input_write,
     .waits_for = "changing sizes"},
    {"A5",
     {{[](const Tensors& in) { return Tensors{at::linear(in[0], in[1], in[2]).sum().abs()}; },
       {complex_layer()}}}},
    {.id = "A6",
     .cases = {{[](const Tensors& in) {
                  return Tensors{
                      std::get<0>(at::embedding_bag(in[0], in[1], in[2], false, 0, /*sparse=*/true))
                          .view({-1})};
                },
                {bags()},
                uncompiled({.same_bases = false})}},
     .waits_for = "changing sizes"},
    {.id = "A8", .check = the_backward_is_lazy},
    {.id = "A9", .check = calls_come_in_order},
    {.id = "A10", .check = a_body_without_gradients},
    {.id = "A11", .check = compilers_are_called_once},
    {.id = "A12", .check = boxed_code_may_empty_its_inputs},
    {.id = "A13", .check = linear_in_inference_mode},
    {"A14",
     {{[](const Tensors& in) { return Tensors{CloneAddOne::apply(in[0]), CloneAddOne::apply(in[0] * 2)}; },
       both([](bool rg) { return leaves({{3}}, {rg}); })}}},
    {.id = "A15",
     .cases = {{with_its_own_gradient, scalar, uncompiled()},
               {[](const Tensors& in) { return Tensors{slope(in[0], in[0])}; },
                {leaves({{3}}, {true})},
                uncompiled()}}},
    {"A16",
     {{[](const Tensors& in) { return Tensors{in[0].sin()}; }, scalar},
      {[](const Tensors& in) { return Tensors{slope(in[0].sin(), in[0])}; }, scalar, uncompiled()},
      {[](const Tensors& in) { return torch::autograd::grad({in[0].sin()}, {in[0]}, {in[1]}, true, true); },
       {leaves({{3}, {3}}, {true, false})},
       uncompiled()},
      {[](const Tensors& in) { return Tensors{slope(slope(in[0].sin(), in[0]), in[0])}; }, scalar,
       uncompiled()},
      {[](const Tensors& in) { return Tensors{in[0] + in[1]}; }, {leaves({{3}, {}}, {true, true})}}}},
    {"A17",
     {{[](const Tensors& in) {
         at::Tensor a = in[0] * 2;
         a.relu_();
         return Tensors{a};
       },
       both([](bool rg) { return leaves({{3}}, {rg}); })}},
     relu_is_functional},
    {"A20",
     {{[](const Tensors& in) { return Tensors{at::layer_norm(in[0], {8}, in[1], in[2])}; },
       {leaves({{2, 4, 8}, {8}, {8}}, {true, true, true})}},
      {[](const Tensors& in) { return Tensors{at::rms_norm(in[0], {8}, in[1])}; },
       {leaves({{2, 4, 8}, {8}}, {true, true})}}}},
    {.id = "A21", .check = no_gradient_at_all, .waits_for = "min-cut"},
});

}  // namespace
}  // namespace tandem::behaviours
