/// Calls as texts that are equal only where the calls are.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Appends a number of some kind: every kind has a letter of its own.
void spell(std::string& to, char kind, int64_t number);
/// Appends a constant, so that 1, 1.0 and true are different; false for one that has no text, such as a
/// tensor.
bool spell(std::string& to, const c10::IValue& constant);

/// Appends the operator and its arguments. A value is spelled by its number, `number(Value)`, and a constant
/// without a text by `other(to, constant)`.
template <class Number, class Other>
void spell_call(std::string& to, const Node& node, Number&& number, Other&& other) {
  to += node.op.operator_name().name;
  to += '.';
  to += node.op.operator_name().overload_name;
  for (const Operand& argument : node.arguments) {
    if (auto* value = std::get_if<Value>(&argument)) {
      spell(to, 'v', number(*value));
    } else if (auto* list = std::get_if<std::vector<Value>>(&argument)) {
      spell(to, 'l', int64_t(list->size()));
      for (Value value : *list) spell(to, 'v', number(value));
    } else if (const auto& constant = std::get<c10::IValue>(argument); !spell(to, constant)) {
      other(to, constant);
    }
  }
}

}  // namespace tandem
