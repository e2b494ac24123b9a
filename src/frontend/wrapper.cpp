// What wrappers need that does not depend on their type: gradients of the right kind, places in a module.
#include <tandem/wrapper.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <sstream>

namespace tandem::detail {
namespace {

/// A part of a wrapper in a module's tree, which has no names with dots.
class WrapperPart final : public torch::nn::Module {
 public:
  WrapperPart() : Module("tandem::WrapperPart") {}

 private:
  /// Called when the module above is cloned. Tensors keep their identity, since the wrapper beside holds them
  /// as well.
  void clone_(Module& other, const std::optional<torch::Device>& device) override {
    at::NoGradGuard no_grad;
    auto copy = [&](const auto& from, const auto& to) {
      for (const auto& item : from) {
        const at::Tensor& source = item.value();
        to[item.key()].set_data(
            device ? source.to(*device, source.scalar_type(), /*non_blocking=*/false, /*copy=*/true)
                   : source.clone());
      }
    };
    copy(other.named_parameters(false), named_parameters(false));
    copy(other.named_buffers(false), named_buffers(false));
    const auto mine = named_children();
    for (const auto& item : other.named_children())
      std::dynamic_pointer_cast<WrapperPart>(mine[item.key()])->clone_(*item.value(), device);
  }
};

/// The part of that name under `parent`, made when it is not there.
torch::nn::Module& child_of(torch::nn::Module& parent, const std::string& name) {
  auto children = parent.named_children();
  if (auto* found = children.find(name))
    if (auto part = std::dynamic_pointer_cast<WrapperPart>(*found)) return *part;
  return *parent.register_module(name, std::make_shared<WrapperPart>());
}

std::string listed(const std::vector<std::string>& names) {
  if (names.empty()) return "no tensor";
  std::string all;
  for (const std::string& name : names)
    all += (all.empty() ? "" : ", ") +
           (name.empty() ? "one plain tensor"
                         : name.substr(name.starts_with('.') || name.starts_with(':') ? 1 : 0));
  return all;
}

/// "weight", ".layers[0].b" are weight, layers, 0, b.
std::vector<std::string> steps_of(const std::string& name, std::string path) {
  std::replace_if(path.begin(), path.end(), [](char c) { return c == '[' || c == ']'; }, '.');
  std::vector<std::string> steps{name};
  std::istringstream stream(path);
  for (std::string step; std::getline(stream, step, '.');)
    if (!step.empty()) steps.push_back(step);
  return steps;
}

void register_tensor(torch::nn::Module& module, const std::string& name, const at::Tensor& tensor) {
  if (torch::autograd::isDifferentiableType(tensor.scalar_type()))
    module.register_parameter(name, tensor);
  else
    module.register_buffer(name, tensor);
}

bool requires_grad(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

/// What can be differentiated, and along what.
std::pair<Tensors, Tensors> roots_of(const Tensors& tensors, const Tensors& gradients) {
  std::pair<Tensors, Tensors> found;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!requires_grad(tensors[i]) || !gradients[i].defined()) continue;
    found.first.push_back(tensors[i]);
    found.second.push_back(gradients[i]);
  }
  if (found.first.empty())
    throw ContractError(
        "backward: no tensor of the value requires grad and has a gradient; there is nothing to "
        "differentiate");
  return found;
}

}  // namespace

void refuse_gradient(const std::vector<std::string>& expected, const std::vector<std::string>& arrived) {
  if (expected == arrived)
    throw ContractError("backward: the gradient holds other constants than its value, which consists of " +
                        listed(expected) + "; make it with tandem::map_tensors of the value");
  throw ContractError("backward: the gradient must be of the kind of its value, which consists of " +
                      listed(expected) + ", and it consists of " + listed(arrived) +
                      "; make it with tandem::map_tensors of the value");
}

void backward(const Tensors& tensors, const Tensors& gradients, const BackwardOptions& options) {
  auto [roots, along] = roots_of(tensors, gradients);
  torch::autograd::backward(roots, along, options.retain_graph || options.create_graph, options.create_graph);
}

Tensors grad(const Tensors& tensors, const Tensors& inputs, const Tensors& gradients,
             const BackwardOptions& options) {
  auto [roots, along] = roots_of(tensors, gradients);
  Tensors wanted, all(inputs.size());
  for (const at::Tensor& input : inputs)
    if (requires_grad(input)) wanted.push_back(input);
  if (wanted.empty()) return all;
  Tensors found = torch::autograd::grad(roots, wanted, along, options.retain_graph || options.create_graph,
                                        options.create_graph, /*allow_unused=*/true);
  for (size_t i = 0, next = 0; i < inputs.size(); ++i)
    if (requires_grad(inputs[i])) all[i] = std::move(found[next++]);
  return all;
}

void register_parameters(torch::nn::Module& module, const std::string& name,
                         const std::vector<std::string>& paths, const Tensors& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    std::vector<std::string> steps = steps_of(name, paths[i]);
    torch::nn::Module* owner = &module;
    for (size_t s = 0; s + 1 < steps.size(); ++s) owner = &child_of(*owner, steps[s]);
    register_tensor(*owner, steps.back(), tensors[i]);
  }
}

}  // namespace tandem::detail
