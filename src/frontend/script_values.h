/// How TorchScript's values become a flat list of tensors and back.
#pragma once

#include <ATen/core/ivalue.h>
#include <tandem/pack.h>

namespace tandem {

/// How a value is put together; its tensors are elsewhere, in the order in which they are met.
struct ScriptLayout {
  enum class Kind : uint8_t { Tensor, Constant, List, Tuple, Dict };
  Kind kind = Kind::Constant;
  c10::IValue constant;           ///< Constant: the value itself
  c10::TypePtr type;              ///< of a list's elements, of the tuple, of the dict
  std::vector<c10::IValue> keys;  ///< of a dict
  std::vector<ScriptLayout> items;
};

/// Lists the tensors in `value` and writes everything else down: values that write the same have the same
/// layout. Throws UnsupportedError for kinds that have no place in a signature, such as objects.
void write_script_value(const c10::IValue& value, Writer& to);

/// Writes down everything, tensors and objects by their identity.
void write_script_state(const c10::IValue& value, Writer& to);

ScriptLayout describe_script_value(const c10::IValue& value);

/// The value with this layout and these tensors.
c10::IValue build_script_value(const ScriptLayout& layout, const at::Tensor*& next_tensor);

}  // namespace tandem
