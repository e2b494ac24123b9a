/// How the arguments of a node are handed to libtorch's boxed calls.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <tandem/graph.h>

namespace tandem {

/// Whether an argument is a list whose tensors may be missing.
inline bool is_list_of_optionals(const c10::Argument& argument) {
  c10::TypePtr type = argument.type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  auto list = type->cast<c10::ListType>();
  return list && list->getElementType()->kind() == c10::TypeKind::OptionalType;
}

inline bool is_optional(const c10::Argument& argument) {
  return argument.type()->kind() == c10::TypeKind::OptionalType;
}

/// A tensor in such a place stands for the number that it holds.
inline bool is_number(const c10::Type& type) {
  return type.kind() == c10::TypeKind::NumberType || type.kind() == c10::TypeKind::FloatType;
}
inline bool is_list_of_numbers(const c10::Type& type) {
  auto* list = type.castRaw<c10::ListType>();
  return list && is_number(*list->getElementType());
}

/// Whether some number of a call is known only when it runs.
inline bool reads_numbers(const Node& node) {
  const auto& declared = node.op.schema().arguments();
  for (size_t i = 0; i < node.arguments.size(); ++i)
    if (!std::holds_alternative<c10::IValue>(node.arguments[i]) &&
        (is_number(*declared[i].type()) || is_list_of_numbers(*declared[i].type())))
      return true;
  return false;
}

}  // namespace tandem
