#include "shapes/knowledge.h"

#include "ops/by_operator.h"
#include "ops/facts.h"
#include "shapes/rules/helpers.h"

namespace tandem {
namespace {

bool written(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

/// `writing` takes what `functional` takes, then perhaps tensors that receive the results.
bool starts_like(const c10::FunctionSchema& writing, const c10::FunctionSchema& functional) {
  size_t inputs = functional.arguments().size();
  if (writing.arguments().size() < inputs) return false;
  for (size_t i = 0; i < inputs; ++i)
    if (writing.arguments()[i].name() != functional.arguments()[i].name() ||
        *writing.arguments()[i].type() != *functional.arguments()[i].type())
      return false;
  return std::all_of(writing.arguments().begin() + inputs, writing.arguments().end(), written);
}

bool is_overload_of(std::string_view full_name, std::string_view name) {
  return full_name.starts_with(name) && (full_name.size() == name.size() || full_name[name.size()] == '.');
}

/// The rule of the functional operator that writes nothing and computes the same as `op`.
void find_rule_of_functional_form(const c10::OperatorHandle& op, Knowledge& knowledge) {
  const c10::FunctionSchema& schema = op.schema();
  std::string_view name = schema.name();
  bool in_place = name.ends_with('_') && written(schema.arguments().front());
  if (in_place)
    name.remove_suffix(1);
  else if (!written(schema.arguments().back()))
    return;
  for (const rules::Row& row : rules::all()) {
    if (!is_overload_of(row.name, name)) continue;
    const c10::FunctionSchema& functional = find_op(std::string(row.name)).schema();
    size_t receivers = in_place ? 0 : functional.returns().size();
    if (schema.arguments().size() != functional.arguments().size() + receivers ||
        !starts_like(schema, functional))
      continue;
    knowledge.rule = row.rule;
    knowledge.form = in_place ? Knowledge::Form::InPlace : Knowledge::Form::Out;
    return;
  }
}

std::unique_ptr<Knowledge> learn(const c10::OperatorHandle& op) {
  auto knowledge = std::make_unique<Knowledge>();
  const c10::FunctionSchema& schema = op.schema();
  knowledge->rule = find_shape_rule(full_name(op));
  // What changes sizes and strides in place is not written into.
  if (!knowledge->rule && schema.is_mutable() && !schema.arguments().empty() && !facts(op).changes_metadata)
    find_rule_of_functional_form(op, *knowledge);
  knowledge->meta_kernel = find_meta_kernel(op);
  knowledge->returns = schema.returns().size();
  Kind kind = facts(op).kind;
  knowledge->pointwise = kind == Kind::Pointwise && !schema.is_mutable() && schema.name() != "aten::copy";
  const bool composite = knowledge->meta_kernel && knowledge->meta_kernel->composite;
  knowledge->steady = (kind == Kind::Pointwise && !composite) || kind == Kind::View || kind == Kind::Matmul;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (argument.name() == "device") knowledge->device_argument = int(i);
    if (argument.type()->str().find("Tensor") != std::string::npos) knowledge->takes_tensors = true;
  }
  return knowledge;
}

}  // namespace

Knowledge& knowledge_of(const c10::OperatorHandle& op) {
  static auto* known = new ByOperator<std::unique_ptr<Knowledge>>;
  return *known->of(op, learn);
}

}  // namespace tandem
