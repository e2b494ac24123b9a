/// Gradients of values that are made of several tensors.
#pragma once

#include <tandem/graph.h>
#include <tandem/pack.h>

namespace torch::nn {
class Module;
}

namespace [[gnu::visibility("default")]] tandem {

struct BackwardOptions;

namespace detail {

/// Throws the ContractError of a gradient of another kind than its value.
[[noreturn]] void refuse_gradient(const std::vector<std::string>& expected,
                                  const std::vector<std::string>& arrived);
/// The path of each tensor, with the types of what variants hold.
template <class W>
std::vector<std::string> kind_of(const W& wrapper) {
  std::vector<std::string> names;
  Writer writer;
  writer.names = &names;
  writer.names_kinds = true;
  writer.write(wrapper);
  return names;
}
/// Takes both apart; they must agree in all but the values of their tensors.
template <class W>
std::pair<Tensors, Tensors> value_and_gradient(const W& wrapper, const W& gradient) {
  Writer value, along;
  value.write(wrapper);
  along.write(gradient);
  if (value.rest != along.rest || value.tensors.size() != along.tensors.size())
    refuse_gradient(kind_of(wrapper), kind_of(gradient));
  return {std::move(value.tensors), std::move(along.tensors)};
}
void backward(const Tensors& tensors, const Tensors& gradients, const BackwardOptions& options);
Tensors grad(const Tensors& tensors, const Tensors& inputs, const Tensors& gradients,
             const BackwardOptions& options);
void register_parameters(torch::nn::Module& module, const std::string& name,
                         const std::vector<std::string>& paths, const Tensors& tensors);

}  // namespace detail
}  // namespace tandem
