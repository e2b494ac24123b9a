/// What a call of a TorchScript method must look like, and what its module holds.
#pragma once

#include <ATen/core/function_schema.h>
#include <tandem/script.h>

#include "frontend/script_values.h"

namespace tandem {

/// The arguments in the order of the schema, without the module itself, defaults filled in; throws
/// ContractError that names the argument when the call does not fit.
std::vector<c10::IValue> match_arguments(const c10::FunctionSchema& schema,
                                         std::vector<c10::IValue> arguments, const Keywords& keywords);

/// The attributes of a module and of everything below it. Tensors are read live wherever they are used; what
/// else the attributes hold joins the signature.
class ScriptAttributes {
 public:
  explicit ScriptAttributes(const c10::intrusive_ptr<c10::ivalue::Object>& module) { collect(module, ""); }

  void write(Writer& to) const;

  /// A copy of all attributes, deep enough to undo assignments.
  std::vector<c10::IValue> snapshot() const;
  /// Undoes assignments since the snapshot was taken; returns the name of the first attribute that had
  /// changed, or nothing.
  std::string restore(const std::vector<c10::IValue>& snapshot) const;

 private:
  void collect(const c10::intrusive_ptr<c10::ivalue::Object>& object, const std::string& prefix);

  struct Held {
    c10::intrusive_ptr<c10::ivalue::Object> object;
    std::string name;
  };
  std::vector<Held> objects_;
};

}  // namespace tandem
