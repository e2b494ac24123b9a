/// What is known of one operator before its shapes are asked for: looked up once, then read at every call.
#pragma once

#include "shapes/meta_kernel.h"
#include "shapes/shapes.h"

#include <atomic>

namespace tandem {

struct Knowledge {
  /// How the rule of a functional operator answers for the operator asked.
  enum class Form : uint8_t { Functional, InPlace, Out };

  ShapeRule rule = nullptr;
  Form form = Form::Functional;
  std::optional<MetaKernel> meta_kernel;
  std::atomic<bool> meta_kernel_missing = false;  ///< libtorch said it had one, then threw
  std::atomic<bool> meta_kernel_worked = false;
  bool steady = false;  ///< its Meta kernel works for all arguments or for none
  int device_argument = -1;
  bool takes_tensors = false;
  /// and makes its result itself, of operands that it brings to one dtype
  bool pointwise = false;
  size_t returns = 0;
};

Knowledge& knowledge_of(const c10::OperatorHandle& op);

}  // namespace tandem
