/// What an operator would return, found without running it.
#pragma once

#include <ATen/core/stack.h>
#include <tandem/build.h>

namespace tandem {

/// One question for a shape rule: the arguments as meta tensors, the device that the real tensors are on. The
/// answer replaces the arguments.
class ShapeCall {
 public:
  ShapeCall(const c10::OperatorHandle& op, c10::Device device, torch::jit::Stack& stack)
      : op(op), device(device), arguments(stack) {}

  const c10::OperatorHandle& op;
  const c10::Device device;
  /// one IValue per schema argument, tensors on meta; wrapped numbers are real CPU scalars
  torch::jit::Stack& arguments;
  std::vector<c10::IValue> results;  ///< one per schema return, tensors on meta
  uint64_t cpu_results = 0;          ///< bit i: result i lives on the CPU whatever `device` is

  const at::Tensor& tensor(size_t i) const { return arguments[i].toTensor(); }
  /// Undefined when the argument is None.
  at::Tensor optional_tensor(size_t i) const {
    return arguments[i].isNone() ? at::Tensor() : arguments[i].toTensor();
  }
  int64_t integer(size_t i) const { return arguments[i].toInt(); }
  bool boolean(size_t i) const { return arguments[i].toBool(); }
  std::vector<int64_t> integers(size_t i) const { return arguments[i].toIntVector(); }

  void give(at::Tensor meta) { results.emplace_back(std::move(meta)); }
};

using ShapeRule = void (*)(ShapeCall&);

/// Our own rule for an operator (by full name, "aten::convolution"), or null.
ShapeRule find_shape_rule(const std::string& full_name);

/// A meta tensor with a storage of its own, contiguous or with given strides. Cheap: no dispatcher.
at::Tensor make_meta(at::IntArrayRef sizes, at::ScalarType dtype);
at::Tensor make_meta(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype);
/// A meta tensor with the geometry of `meta`, on a storage of its own.
at::Tensor make_meta(const TensorMeta& meta);

/// One for each result.
using Devices = c10::SmallVector<c10::Device, 2>;

/// Replaces the arguments on `stack` (meta tensors, wrapped numbers as real CPU scalars) by the operator's
/// results on meta, and says where each lives: own rule first, then the dispatcher's Meta kernel, else the
/// real kernel on stand-in data (counted as `fallback_shapes`).
Devices infer_shapes(const c10::OperatorHandle& op, c10::Device device, torch::jit::Stack& stack);

/// Whether a kernel on this thread is being asked for shapes, so that what it calls is to go to
/// `infer_inner_shapes`.
bool shapes_are_asked();
/// The same for such a call; false when it has nothing to do with metas.
bool infer_inner_shapes(const c10::OperatorHandle& op, torch::jit::Stack& stack);

/// A meta of the same geometry on the same storage that shares nothing else.
at::Tensor alias_meta(const at::Tensor& meta);

/// Describes a meta tensor that stands for one on `device`; `storage` is left at -1.
TensorMeta describe(const at::Tensor& meta, c10::Device device);

/// Operators that had to be run on stand-in data so far in this process, sorted.
std::vector<std::string> fallback_operators();

}  // namespace tandem
