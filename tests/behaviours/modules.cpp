// Rows H and J: modules, autocast.
#include "behaviours/row.h"

#include "fuzz/moves.h"
#include "support/autocast.h"
#include "trace/location.h"

namespace tandem::behaviours {
namespace {

using test::Autocast;
using test::counter;

/// What two steps of training show: outputs, gradients and state.
Tensors trained(torch::nn::Module& module, const at::Tensor& input, const Callable& forward) {
  Tensors seen;
  for (int step = 0; step < 2; ++step) {
    torch::manual_seed(step);
    at::Tensor x = input.detach().clone().requires_grad_(input.requires_grad());
    seen.push_back(forward({x})[0]);
    seen.back().sin().sum().backward();  // of squares a batch norm has no gradient but rounding
    seen.push_back(x.grad());
    for (const at::Tensor& parameter : module.parameters()) seen.push_back(parameter.grad().clone());
    for (const at::Tensor& buffer : module.buffers()) seen.push_back(buffer.clone());
  }
  return seen;
}

/// Equal models, one of them compiled, trained on equal data.
template <class Holder>
void compare_trained(Holder plain, const Tensors& inputs, Options options = {}) {
  using Module = typename Holder::ContainedType;
  const auto copy = [&] { return std::dynamic_pointer_cast<Module>(plain->clone()); };
  const auto forward_of = [](const std::shared_ptr<Module>& module) {
    return [=](const Tensors& in) { return Tensors{module->forward(in[0])}; };
  };
  const auto eager = [&] {
    const auto module = copy();
    return trained(*module, inputs[0], forward_of(module));
  };
  const auto twin = copy();
  options.debug_asserts = true;
  options.watch = {twin};
  const Compiled fast(forward_of(twin), options);
  const Tensors want = eager(), got = trained(*twin, inputs[0], fast), moves = fuzz::moves_of(want, eager);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(same_values(got[i], want[i], moves[i])) << "tensor " << i << " of those that were seen";
}

void in_both_modes(const std::function<void(Options)>& check) {
  for (bool keep : {true, false}) check({.keep_input_mutations = keep});
}

void small_modules() {
  in_both_modes([](Options options) {
    compare_trained(torch::nn::Sequential(torch::nn::Linear(32, 32), torch::nn::ReLU()), {leaf({4, 32})},
                    options);
    compare_trained(torch::nn::Linear(20, 30), {leaf({4, 20})}, options);
  });
}

void batch_norm_in_training() {
  in_both_modes(
      [](Options options) { compare_trained(torch::nn::BatchNorm2d(3), {leaf({2, 3, 4, 4})}, options); });
  torch::nn::BatchNorm2d model(3);
  Explanation e =
      Compiled([&](const Tensors& in) { return Tensors{model(in[0])}; }, {}).explain({leaf({2, 3, 4, 4})});
  size_t kept = 0;
  for (const Contract::Input& input : e.contract.inputs) kept += input.write == InputWrite::InGraph;
  EXPECT_EQ(kept, 3u);
  EXPECT_FALSE(e.backward.empty());
}

void batch_norm_in_eval() {
  torch::nn::BatchNorm2d model(3);
  model->eval();
  torch::NoGradGuard no_grad;
  Explanation e =
      Compiled([&](const Tensors& in) { return Tensors{model(in[0])}; }, {}).explain({leaf({2, 3, 4, 4})});
  for (const Contract::Input& input : e.contract.inputs)
    EXPECT_EQ(input.write, InputWrite::None) << input.name;
  for (const Node& node : e.forward.nodes()) EXPECT_TRUE(node.writes.empty());
}

torch::nn::Sequential network() {
  return torch::nn::Sequential(torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4), torch::nn::GELU(),
                               torch::nn::MaxPool2d(2), torch::nn::Dropout(0.3), torch::nn::Flatten(),
                               torch::nn::Linear(16, 8),
                               torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})), torch::nn::Softmax(1));
}

void a_network_in_train_and_eval() {
  for (bool training : {true, false}) {
    torch::nn::Sequential model = network();
    model->train(training);
    compare_trained(model, {leaf({2, 3, 6, 6})});
  }
  remark("every sample of module_db: the sweep over op_db and module_db");
}

void nodes_have_locations() {
  if (user_location().empty()) return remark("built without libdw: no places in the source");
  int write_line = 0;
  Compiled fast(
      [&](const Tensors& in) {
        at::Tensor y = in[0].sin() * in[0];
        y.slice(0, 0, 2).mul_(2);
        write_line = __LINE__ + 1;
        in[1].add_(1);
        return Tensors{y.exp()};
      },
      {.record_locations = true});
  Explanation e = fast.explain({leaf({3}), torch::ones(3)});
  for (const Graph* graph : {&e.forward, &e.backward})
    for (const Node& node : graph->nodes()) {
      EXPECT_NE(node.location.find("modules.cpp:"), std::string::npos)
          << to_string(*graph, node) << " has the location '" << node.location << "'";
      EXPECT_TRUE(node.writes.empty() || node.location.ends_with(":" + std::to_string(write_line)))
          << node.location;
    }
}

void captures_are_static() {
  std::vector<size_t> positions;
  torch::nn::Linear model(3, 3);
  Compiled fast([&](const Tensors& in) { return Tensors{model(in[0])}; },
                {.fw_compiler = Compiler([&](const Graph& graph, const CompileContext& context) {
                   if (context.stage == Stage::Forward) positions = context.static_inputs;
                   return find_backend("eager")->compile(graph, context);
                 })});
  fast({leaf({2, 3})})[0].sum().backward();
  EXPECT_EQ(positions, (std::vector<size_t>{1, 2}));
}

// ---- autocast

Maker mixed(bool requires_grad) {
  return [=] {
    at::Tensor a = leaf({1, 32}, requires_grad),
               b = torch::randn({5, 32}).to(at::kBFloat16).requires_grad_(requires_grad);
    return Scene{.arguments = {a, b}, .leaves = requires_grad ? Tensors{a, b} : Tensors{}};
  };
}

void einsum_under_autocast() {
  Autocast autocast(at::kBFloat16);
  hold({[](const Tensors& in) {
          return Tensors{torch::log_softmax(torch::einsum("fd,bd->fb", {in[0], in[1]}), 1)};
        },
        both(mixed),
        {.same_bases = false}});
  remark("on the CPU, in bfloat16");
}

void backward_outside_autocast() {
  torch::nn::Sequential plain = network();
  auto twin = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(plain->clone());
  Compiled fast([&](const Tensors& in) { return Tensors{twin->forward(in[0])}; },
                {.debug_asserts = true, .watch = {twin}});
  at::Tensor x = torch::randn({2, 3, 6, 6}), want, got;
  {
    Autocast autocast(at::kBFloat16);
    torch::manual_seed(1);
    want = plain->forward(x);
    torch::manual_seed(1);
    got = fast({x})[0];
  }
  EXPECT_TRUE(same_values(got, want));
  want.square().sum().backward();
  got.square().sum().backward();
  for (size_t i = 0; i < plain->parameters().size(); ++i)
    EXPECT_TRUE(same_values(twin->parameters()[i].grad(), plain->parameters()[i].grad())) << i;
}

void decomposed_half_batch_norm() {
  Callable fn = [](const Tensors& in) {
    return Tensors{torch::batch_norm(in[0], in[1], in[2], in[3], in[4], true, 0.1, 1e-5, false)};
  };
  Compiled fast(fn, {.decompositions = default_decompositions()});
  auto inputs = [] {
    torch::manual_seed(1);
    return Tensors{torch::randn({8, 3, 4, 4}).to(at::kBFloat16), torch::rand(3) + 1, torch::randn(3),
                   torch::zeros(3), torch::ones(3)};
  };
  Tensors a = inputs(), b = inputs();
  at::Tensor got = fast(a)[0], want = fn(b)[0];
  EXPECT_EQ(got.scalar_type(), want.scalar_type());
  EXPECT_TRUE(at::allclose(got.to(at::kFloat), want.to(at::kFloat), 2e-2, 2e-2));
  for (size_t i : {3, 4}) EXPECT_TRUE(at::allclose(a[i], b[i], 1e-4, 1e-5)) << i;
  remark("on the CPU, in bfloat16");
}

void autocast_is_off_inside_alone() {
  std::vector<at::ScalarType> inside;
  auto compiler = [&](const Graph& graph, const CompileContext&) {
    return boxed([&, graph](Tensors&& in) {
      inside.push_back(at::mm(torch::ones({2, 2}), torch::ones({2, 2})).scalar_type());
      return graph.run(std::move(in));
    });
  };
  Compiled fast([](const Tensors& in) { return Tensors{in[0].mm(in[0])}; }, {.fw_compiler = compiler});
  {
    Autocast autocast(at::kBFloat16);
    EXPECT_EQ(fast({torch::ones({2, 2})})[0].scalar_type(), at::kBFloat16);
    EXPECT_EQ(at::mm(torch::ones({2, 2}), torch::ones({2, 2})).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(fast({torch::ones({2, 2})})[0].scalar_type(), at::kFloat);
  EXPECT_EQ(inside, (std::vector<at::ScalarType>{at::kFloat, at::kFloat}));
}

void dtypes_of_autocast_take_turns() {
  torch::nn::Sequential model(torch::nn::Linear(4, 4), torch::nn::ReLU(), torch::nn::Linear(4, 2));
  Compiled fast([&](const Tensors& in) { return Tensors{model->forward(in[0])}; }, {});
  const uint64_t before = counter("trace");
  for (auto dtype : {at::kBFloat16, at::kHalf, at::kBFloat16, at::kHalf}) {
    Autocast autocast(dtype);
    at::Tensor x = torch::ones({3, 4});
    at::Tensor got = fast({x})[0];
    EXPECT_EQ(got.scalar_type(), dtype);
    EXPECT_TRUE(same_values(got, model->forward(x)));
  }
  EXPECT_EQ(counter("trace"), before + 2);
}

const bool modules_rows = add_rows({
    {.id = "H1",
     .cases = {{[](const Tensors& in) { return Tensors{at::linear(in[0], in[2], in[3]) + in[1]}; },
                {leaves({{4, 20}, {4, 30}, {30, 20}, {30}}, {true, true, true, true})}}},
     .check = small_modules},
    {.id = "H2", .check = batch_norm_in_training},
    {.id = "H3", .check = batch_norm_in_eval},
    {.id = "H5", .check = a_network_in_train_and_eval, .waits_for = "changing sizes"},
    {.id = "H6", .check = nodes_have_locations},
    {.id = "H7",
     .check = captures_are_static,
     .does_not_apply = "there are no ordering tokens that would shift positions; the list itself is held"},
    {.id = "J1", .check = einsum_under_autocast},
    {.id = "J2", .check = backward_outside_autocast, .waits_for = "min-cut"},
    {.id = "J3", .check = decomposed_half_batch_norm},
    {.id = "J5", .check = autocast_is_off_inside_alone},
    {.id = "J6", .check = dtypes_of_autocast_take_turns},
});

}  // namespace
}  // namespace tandem::behaviours
