/// How the arguments of a node are handed to libtorch's boxed calls.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

namespace tandem {

/// Whether an argument is a list whose tensors may be missing.
inline bool is_list_of_optionals(const c10::Argument& argument) {
  c10::TypePtr type = argument.type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  auto list = type->cast<c10::ListType>();
  return list && list->getElementType()->kind() == c10::TypeKind::OptionalType;
}

inline bool is_optional(const c10::Argument& argument) { return argument.type()->kind() == c10::TypeKind::OptionalType; }

}  // namespace tandem
