#include "frontend/script_call.h"

#include <ATen/core/class_type.h>
#include <ATen/core/jit_type.h>

namespace tandem {
namespace {

using c10::IValue;

std::string parameter_list(const c10::FunctionSchema& schema) {
  std::string names;
  for (size_t i = 1; i < schema.arguments().size(); ++i)
    names += (i > 1 ? ", " : "") + schema.arguments()[i].name();
  return schema.name() + "(" + names + ")";
}

void check_count(const c10::FunctionSchema& schema, size_t given) {
  size_t wanted = schema.arguments().size() - 1;
  if (given > wanted)
    throw ContractError(parameter_list(schema) + " takes at most " + std::to_string(wanted) + " argument" +
                        (wanted == 1 ? "" : "s") + ", but " + std::to_string(given) + " were given.");
}

void check_keywords(const c10::FunctionSchema& schema, size_t positional, const Keywords& keywords) {
  for (const auto& [name, value] : keywords) {
    auto index = schema.argumentIndexWithName(name);
    if (!index || *index == 0)
      throw ContractError(parameter_list(schema) + " has no argument '" + name +
                          "'; use one of its own names.");
    if (static_cast<size_t>(*index) <= positional)
      throw ContractError("argument '" + name + "' of " + schema.name() +
                          " is given twice, by position and by name; leave one out.");
  }
}

void check_type(const c10::FunctionSchema& schema, const c10::Argument& argument, const IValue& value) {
  if (value.isTensor() && argument.type() == c10::TensorType::get()) return;
  if (value.isGenericDict() && value.toGenericDict().empty()) return;
  if (auto type = value.type(); !type->isSubtypeOf(*argument.type()))
    throw ContractError("argument '" + argument.name() + "' of " + schema.name() + ": expected " +
                        argument.type()->repr_str() + ", got " + type->repr_str() + ".");
}

IValue keyword_or_default(const c10::FunctionSchema& schema, const c10::Argument& argument,
                          const Keywords& keywords) {
  if (auto found = keywords.find(argument.name()); found != keywords.end()) return found->second;
  if (argument.default_value()) return *argument.default_value();
  throw ContractError("argument '" + argument.name() + "' of " + parameter_list(schema) +
                      " is missing; it has no default.");
}

// Lists and dicts are shared by reference: a copy of the reference would change along with the original.
IValue copied(const IValue& value) {
  if (value.isList()) return value.toList().copy();
  if (value.isGenericDict()) return value.toGenericDict().copy();
  return value;
}

std::string written(const IValue& value) {
  Writer writer;
  write_script_state(value, writer);
  return writer.rest;
}

}  // namespace

std::vector<IValue> match_arguments(const c10::FunctionSchema& schema, std::vector<IValue> arguments,
                                    const Keywords& keywords) {
  size_t positional = arguments.size();
  check_count(schema, positional);
  check_keywords(schema, positional, keywords);
  for (size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (i > positional) arguments.push_back(keyword_or_default(schema, argument, keywords));
    check_type(schema, argument, arguments[i - 1]);
  }
  return arguments;
}

void ScriptAttributes::collect(const c10::intrusive_ptr<c10::ivalue::Object>& object,
                               const std::string& prefix) {
  for (const Held& held : objects_)
    if (held.object == object) return;
  objects_.push_back({object, prefix});
  for (size_t i = 0; i < object->slots().size(); ++i)
    if (object->slots()[i].isObject())
      collect(object->slots()[i].toObject(), prefix + object->type()->getAttributeName(i) + ".");
}

void ScriptAttributes::write(Writer& to) const {
  for (const Held& held : objects_)
    for (const IValue& value : held.object->slots()) write_script_state(value, to);
}

std::vector<IValue> ScriptAttributes::snapshot() const {
  std::vector<IValue> values;
  for (const Held& held : objects_)
    for (const IValue& value : held.object->slots()) values.push_back(copied(value));
  return values;
}

std::string ScriptAttributes::restore(const std::vector<IValue>& snapshot) const {
  std::string changed;
  auto before = snapshot.begin();
  for (const Held& held : objects_) {
    for (size_t slot = 0; slot < held.object->slots().size(); ++slot, ++before) {
      if (written(held.object->slots()[slot]) == written(*before)) continue;
      held.object->setSlot(slot, *before);
      if (changed.empty()) changed = held.name + held.object->type()->getAttributeName(slot);
    }
  }
  return changed;
}

}  // namespace tandem
