// Functions and modules as graphs with names; the names of tests cite rows of the table of behaviours.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::contains;
using test::leaf;
using test::message;
using test::same_values;
using In = ExportedInput::Kind;
using Out = ExportedOutput::Kind;

struct ConvNormImpl : torch::nn::Module {
  ConvNormImpl() {
    conv = register_module("conv", torch::nn::Conv2d(1, 2, 3));
    norm = register_module("norm", torch::nn::BatchNorm2d(2));
  }
  std::vector<at::Tensor> forward(at::Tensor x) {
    at::Tensor out = torch::relu(norm(conv(x)));
    return {out.sum(), out.detach()};
  }
  torch::nn::Conv2d conv = nullptr;
  torch::nn::BatchNorm2d norm = nullptr;
};
TORCH_MODULE(ConvNorm);

template <class Items>
std::vector<std::string> names(const Items& items) {
  std::vector<std::string> all;
  for (const auto& item : items) all.push_back(std::to_string(int(item.kind)) + " " + item.name);
  return all;
}

Tensors state_and(const torch::nn::Module& module, const Tensors& arguments) {
  Tensors all;
  for (const at::Tensor& t : module.parameters()) all.push_back(t.detach().clone());
  for (const at::Tensor& t : module.buffers()) all.push_back(t.detach().clone());
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

TEST(Export, G1_AModuleWithItsLoss) {
  ConvNorm model;
  at::Tensor x = torch::randn({2, 1, 5, 5});
  Exported exported = export_joint(model, {x}, 0);
  exported.graph.verify();
  EXPECT_EQ(names(exported.inputs),
            (std::vector<std::string>{"0 conv.weight", "0 conv.bias", "0 norm.weight", "0 norm.bias",
                                      "1 norm.running_mean", "1 norm.running_var",
                                      "1 norm.num_batches_tracked", "2 argument 0"}));
  EXPECT_EQ(names(exported.outputs),
            (std::vector<std::string>{"0 norm.running_mean", "0 norm.running_var",
                                      "0 norm.num_batches_tracked", "1 0", "1 1", "2 conv.weight",
                                      "2 conv.bias", "2 norm.weight", "2 norm.bias"}));
  EXPECT_TRUE(exported.captures.empty());
  Tensors got = exported(state_and(*model, {x}));
  std::vector<at::Tensor> want = model->forward(x);
  want[0].backward();
  ASSERT_EQ(got.size(), 9u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_values(got[i], model->buffers()[i])) << i;
  EXPECT_TRUE(same_values(got[3], want[0].detach()) && same_values(got[4], want[1]));
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_values(got[5 + i], model->parameters()[i].grad())) << i;
}

TEST(Export, G1_TheInferenceFormHasFiveOutputs) {
  ConvNorm model;
  at::Tensor x = torch::randn({2, 1, 5, 5});
  Tensors state = state_and(*model, {x});
  Exported exported = export_forward(model, {x});
  exported.graph.verify();
  EXPECT_EQ(exported.inputs.size(), 8u);
  EXPECT_EQ(exported.outputs.size(), 5u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(same_values(model->buffers()[i], state[4 + i])) << "exporting wrote a buffer";
  Tensors got = exported(state), want = model->forward(x);
  EXPECT_TRUE(same_values(got[3], want[0].detach()) && same_values(got[4], want[1]));
}

TEST(Export, G2_SplitByTheDefaultPartitioner) {
  auto fn = [](at::Tensor x, at::Tensor y) { return std::vector<at::Tensor>{x * y, y * y.detach()}; };
  at::Tensor x = leaf({3}), y = leaf({3});
  Tensors forward = export_forward(fn, {x, y})({x, y});
  EXPECT_TRUE(same_values(forward[0], (x * y).detach()) && same_values(forward[1], (y * y).detach()));
  Joint joint = export_joint_with_tangents(fn, {x, y});
  joint.graph.verify();
  EXPECT_EQ(joint.primals, 2u);
  EXPECT_EQ(joint.forward_outputs, 2u);
  Partition halves = partition_default(joint);
  halves.forward.verify();
  halves.backward.verify();
  torch::NoGradGuard no_grad;
  Tensors results = halves.forward.run({x, y});
  ASSERT_EQ(results.size(), 2 + halves.saved.size());
  Tensors inputs(results.begin() + 2, results.end());
  inputs.push_back(torch::ones(3));
  inputs.push_back(torch::ones(3));
  Tensors gradients = halves.backward.run(std::move(inputs));
  torch::AutoGradMode enabled(true);
  Tensors outputs = fn(x, y);
  Tensors want = torch::autograd::grad(outputs, {x, y}, {torch::ones(3), torch::ones(3)});
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_TRUE(same_values(gradients[0], want[0]) && same_values(gradients[1], want[1]));
}

TEST(Export, G10_WritesToWhatRequiresGrad) {
  Callable fn = [](const Tensors& in) {
    torch::NoGradGuard no_grad;
    return Tensors{in[0].add_(4)};
  };
  EXPECT_THROW(export_forward(fn, {leaf({3})}), UnsupportedError);
  struct Doubling : torch::nn::Module {
    Doubling() { p = register_parameter("p", torch::ones(3)); }
    at::Tensor forward(at::Tensor x) {
      {
        torch::NoGradGuard no_grad;
        p.mul_(2);
      }
      return (p * x).sum();
    }
    at::Tensor p;
  };
  auto model = std::make_shared<Doubling>();
  Exported exported = export_forward(model, {torch::ones(3)});
  ASSERT_EQ(exported.outputs.size(), 2u);
  EXPECT_EQ(exported.outputs[0].name, "p");
  EXPECT_EQ(exported.outputs[0].kind, Out::Update);
  EXPECT_TRUE(same_values(exported({torch::ones(3), torch::ones(3)})[0], torch::full({3}, 2.f)));
  EXPECT_TRUE(same_values(model->p.detach(), torch::ones(3)));
  EXPECT_THROW(export_joint(model, {torch::ones(3)}), UnsupportedError);
}

TEST(Export, WritesToPlainInputsAreOutputs) {
  Exported exported = export_forward(
      [](at::Tensor a, at::Tensor b) {
        a.add_(b);
        return a * 2;
      },
      {torch::ones(3), torch::ones(3)});
  EXPECT_EQ(names(exported.outputs), (std::vector<std::string>{"0 argument 0", "1 0"}));
  at::Tensor a = torch::ones(3);
  Tensors got = exported({a, torch::ones(3)});
  EXPECT_TRUE(same_values(a, torch::ones(3)));
  EXPECT_TRUE(same_values(got[0], torch::full({3}, 2.f)) && same_values(got[1], torch::full({3}, 4.f)));
}

TEST(Export, ARunOnOtherTensorsIsAContractError) {
  Exported exported = export_forward([](at::Tensor a) { return a.exp(); }, {torch::ones(3)});
  EXPECT_TRUE(contains(message<ContractError>([&] { exported({torch::ones(4)}); }), "argument 0"));
  EXPECT_THROW(exported({torch::ones(3, at::kDouble)}), ContractError);
  EXPECT_THROW(exported({at::Tensor()}), ContractError);
  EXPECT_THROW(exported({}), ContractError);
  EXPECT_THROW(exported({torch::ones(3), torch::ones(3)}), ContractError);
  EXPECT_TRUE(same_values(exported({torch::ones(3)})[0], torch::ones(3).exp()));
}

TEST(Export, OtherStridesGiveTheSameValues) {
  auto fn = [](at::Tensor a) {
    at::Tensor b = a.view({-1});
    b.mul_(2);
    return b.exp();
  };
  Exported exported = export_forward([](at::Tensor a) { return a.sum(0).exp() + a; }, {torch::ones({2, 2})});
  at::Tensor x = torch::randn({2, 2}).t();
  EXPECT_TRUE(at::equal(exported({x})[0], x.sum(0).exp() + x));
  Exported views = export_forward(fn, {torch::ones({2, 2})});
  EXPECT_TRUE(at::equal(views({torch::ones({2, 2})})[1], torch::full({4}, 2.f).exp()));
}

TEST(Export, CapturesAreNamedInputs) {
  at::Tensor captured = leaf({3});
  Exported exported = export_joint([&](at::Tensor a) { return (a * captured).sum(); }, {torch::ones(3)});
  EXPECT_EQ(names(exported.inputs), (std::vector<std::string>{"2 argument 0", "3 captured tensor 0"}));
  EXPECT_EQ(names(exported.outputs), (std::vector<std::string>{"1 0", "2 captured tensor 0"}));
  EXPECT_TRUE(same_values(exported({torch::full({3}, 2.f)})[1], torch::full({3}, 2.f)));
}

TEST(Export, TheGraphSurvivesItsText) {
  ConvNorm model;
  at::Tensor x = torch::randn({2, 1, 5, 5});
  Exported exported = export_joint(model, {x}, 0);
  Graph again = Graph::parse(exported.graph.to_string());
  EXPECT_EQ(again.hash(), exported.graph.hash());
  Tensors state = state_and(*model, {x}), want = exported(state);
  torch::NoGradGuard no_grad;
  Tensors got = again.run(Tensors(state));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_values(got[i], want[i]));
}

TEST(Export, OtherKindsOfTensorsAreRefused) {
  EXPECT_THROW(export_forward([](at::Tensor a) { return a.to_dense(); }, {torch::eye(2).to_sparse()}),
               UnsupportedError);
}

}  // namespace
}  // namespace tandem
