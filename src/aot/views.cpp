#include "aot/views.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <tandem/error.h>

#include "ops/by_operator.h"
#include "ops/facts.h"

namespace tandem {
namespace {

bool same_arguments(const c10::FunctionSchema& a, const c10::FunctionSchema& b) {
  if (a.arguments().size() != b.arguments().size()) return false;
  for (size_t i = 0; i < a.arguments().size(); ++i)
    if (*a.arguments()[i].type() != *b.arguments()[i].type()) return false;
  return true;
}

std::optional<c10::OperatorHandle> find_functional_twin(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  if (!name.name.ends_with("_")) return std::nullopt;
  const std::string base = name.name.substr(0, name.name.size() - 1);
  auto& dispatcher = c10::Dispatcher::singleton();
  auto is_twin = [&](const std::optional<c10::OperatorHandle>& twin) {
    return twin && same_arguments(op.schema(), twin->schema()) && facts(*twin).written.empty();
  };
  if (auto twin = dispatcher.findSchema({base, name.overload_name}); is_twin(twin)) return twin;
  // transpose_ has no overload name and its twin is transpose.int.
  for (const c10::OperatorName& other : dispatcher.getAllOpNames())
    if (other.name == base)
      if (auto twin = dispatcher.findSchema(other); is_twin(twin)) return twin;
  return std::nullopt;
}

constexpr size_t strided_offset = 3;

/// Steps of this operator count from where the base begins, since another tensor may stand there when they
/// are replayed.
bool is_strided(const c10::OperatorHandle& op) {
  static const c10::OperatorName as_strided("aten::as_strided", "");
  return op.operator_name() == as_strided;
}

}  // namespace

std::vector<ViewLink> find_views(const Graph& trace) {
  std::vector<ViewLink> links(trace.value_count());
  for (size_t n = 0; n < trace.nodes().size(); ++n) {
    const Node& node = trace.nodes()[n];
    auto link = [&](Value made, size_t result) {
      for (size_t a = 0; a < node.arguments.size() && !links[made.id].parent; ++a)
        for_each_value(node.arguments[a], [&](Value argument) {
          if (argument != made && trace.meta(argument).storage == trace.meta(made).storage &&
              !links[made.id].parent)
            links[made.id] = {argument, int32_t(n), a, result};
        });
    };
    size_t result = 0;
    for (const Operand& r : node.results) for_each_value(r, [&](Value made) { link(made, result++); });
    for (const auto& [before, after] : node.writes)
      if (after != before) link(after, 0);
  }
  return links;
}

std::optional<c10::OperatorHandle> functional_twin(const c10::OperatorHandle& op) {
  static auto* known = new ByOperator<std::optional<c10::OperatorHandle>>;
  return known->of(op, find_functional_twin);
}

std::optional<std::vector<ViewStep>> view_steps(const Graph& trace, const std::vector<ViewLink>& links,
                                                Value base, Value view) {
  std::vector<ViewStep> steps;
  for (Value at = view; at != base; at = links[at.id].parent) {
    const ViewLink& link = links[at.id];
    if (!link.parent) return std::nullopt;
    const Node& node = trace.nodes()[link.node];
    std::optional<c10::OperatorHandle> op = node.op;
    if (!node.writes.empty()) op = functional_twin(node.op);
    if (!op || !std::holds_alternative<Value>(node.arguments[link.base_argument])) return std::nullopt;
    ViewStep step{*op, node.arguments, link.base_argument, link.result};
    step.arguments[link.base_argument] = Value{};
    if (is_strided(*op))
      step.arguments[strided_offset] = c10::IValue(trace.meta(at).offset - trace.meta(link.parent).offset);
    for (const Operand& argument : step.arguments) {
      bool other_tensor = false;
      for_each_value(argument, [&](Value) { other_tensor = true; });
      if (other_tensor) return std::nullopt;
    }
    steps.push_back(std::move(step));
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

ViewStep strided_step(const TensorMeta& base, const TensorMeta& view) {
  static const c10::OperatorHandle as_strided =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::as_strided", "");
  return {as_strided,
          {Value{}, c10::IValue(c10::IntArrayRef(view.sizes)), c10::IValue(c10::IntArrayRef(view.strides)),
           c10::IValue(view.offset - base.offset)},
          0,
          0};
}

bool gives_list(const ViewStep& step) {
  const auto& returns = step.op.schema().returns();
  return returns.size() == 1 && returns[0].type()->kind() == c10::TypeKind::ListType;
}

std::vector<at::Tensor> replay_all(const ViewStep& step, const at::Tensor& base) {
  torch::jit::Stack stack;
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    if (i == step.base_argument)
      stack.emplace_back(base);
    else if (auto* constant = std::get_if<c10::IValue>(&step.arguments[i]))
      stack.push_back(*constant);
    else
      stack.emplace_back();
  }
  if (is_strided(step.op)) stack[strided_offset] = stack[strided_offset].toInt() + base.storage_offset();
  step.op.callBoxed(stack);
  std::vector<at::Tensor> results;
  for (const c10::IValue& result : stack) {
    if (result.isTensorList())
      for (at::Tensor& made : result.toTensorVector()) results.push_back(std::move(made));
    else
      results.push_back(result.toTensor());
  }
  return results;
}

at::Tensor replay(const ViewStep& step, const at::Tensor& base) {
  std::vector<at::Tensor> results = replay_all(step, base);
  return step.result < results.size() ? std::move(results[step.result]) : base;
}

}  // namespace tandem
