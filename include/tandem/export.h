/// A function or module as one functional graph with names: what to hand to another program.
///
///   tandem::Exported whole = tandem::export_joint(model, {x});      // the loss, and its gradients
///   for (const auto& output : whole.outputs) std::cout << output.name << "\n";
#pragma once

#include <tandem/detail/programs.h>
#include <tandem/partition.h>

namespace [[gnu::visibility("default")]] tandem {

/// What an input of an exported graph is.
struct ExportedInput {
  enum class Kind : uint8_t { Parameter, Buffer, Argument, Capture } kind;
  /// of the parameter or buffer; else "argument 0", "captured tensor 0"
  std::string name;
};

/// What an output of an exported graph is.
struct ExportedOutput {
  enum class Kind : uint8_t { Update, Output, Gradient } kind;
  /// Update: of the input that is to hold it; Gradient: of the input it is the gradient of; Output: its
  /// position
  std::string name;
};

/// A functional graph and what its inputs and outputs are. Inputs: parameters, buffers, arguments, captures.
/// Outputs: updated inputs, what the function returned, then (joint) gradients in the order of the inputs
/// that have one.
struct Exported {
  Graph graph;
  std::vector<ExportedInput> inputs;
  std::vector<ExportedOutput> outputs;
  Tensors captures;  ///< the tensors behind inputs of kind Capture

  /// Runs the graph on all of its inputs but the captures; throws ContractError for tensors of other sizes or
  /// dtypes than those it was exported with.
  Tensors operator()(const Tensors& tensors) const;
};

/// The forward alone. Writes to a function's inputs that require grad, sizes or strides written in place, and
/// written inputs that share memory are refused.
template <class F>
  requires(detail::TensorsFunction<F> || detail::TypedFunction<F>)
Exported export_forward(F fn, const Tensors& example) {
  return detail::export_program(detail::program_of(std::move(fn)), nullptr, example, std::nullopt);
}
template <class Impl>
  requires std::is_base_of_v<torch::nn::Module, Impl>
Exported export_forward(std::shared_ptr<Impl> module, const Tensors& example) {
  return detail::export_program(detail::program_of_module(module), module, example, std::nullopt);
}
template <class Impl>
Exported export_forward(torch::nn::ModuleHolder<Impl> module, const Tensors& example) {
  return export_forward(module.ptr(), example);
}

/// Forward and the gradients of output `loss_index`, a scalar; no other output may require grad.
template <class F>
  requires(detail::TensorsFunction<F> || detail::TypedFunction<F>)
Exported export_joint(F fn, const Tensors& example, size_t loss_index = 0) {
  return detail::export_program(detail::program_of(std::move(fn)), nullptr, example, loss_index);
}
template <class Impl>
  requires std::is_base_of_v<torch::nn::Module, Impl>
Exported export_joint(std::shared_ptr<Impl> module, const Tensors& example, size_t loss_index = 0) {
  return detail::export_program(detail::program_of_module(module), module, example, loss_index);
}
template <class Impl>
Exported export_joint(torch::nn::ModuleHolder<Impl> module, const Tensors& example, size_t loss_index = 0) {
  return export_joint(module.ptr(), example, loss_index);
}

/// Forward and backward of a function of tensors with one tangent for each output that requires grad, ready
/// for a partitioner.
template <class F>
  requires(detail::TensorsFunction<F> || detail::TypedFunction<F>)
Joint export_joint_with_tangents(F fn, const Tensors& example) {
  return detail::export_program_with_tangents(detail::program_of(std::move(fn)), example);
}

}  // namespace tandem
