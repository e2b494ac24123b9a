#include "graph/boxing.h"
#include "ops/facts.h"
#include "ops/numbers.h"
#include "shapes/shapes.h"

#include <tandem/error.h>

namespace tandem {
namespace {

bool is_number_of(const Graph& graph, Value value) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return makes_number(node.op) && std::get<Value>(node.results[0]) == value;
  });
}

/// Turns the values of a graph into meta tensors and results back into values; values of one storage share a
/// meta storage.
class CallOnGraph {
 public:
  CallOnGraph(Graph& graph, const c10::OperatorHandle& op) : graph_(graph), op_(op) {}

  torch::jit::Stack arguments(const std::vector<Operand>& operands) {
    torch::jit::Stack stack;
    for (size_t i = 0; i < operands.size(); ++i)
      stack.push_back(argument(operands[i], *op_.schema().arguments()[i].type()));
    return stack;
  }

  c10::Device device() const { return device_.value_or(c10::kCPU); }

  Operand result(const c10::IValue& result, c10::Device device) {
    if (result.isTensor()) return value(result.toTensor(), device);
    if (result.isTensorList()) {
      std::vector<Value> values;
      for (const at::Tensor& tensor : result.toTensorVector()) values.push_back(value(tensor, device));
      return values;
    }
    return result;
  }

 private:
  c10::IValue argument(const Operand& operand, const c10::Type& type) {
    if (auto* constant = std::get_if<c10::IValue>(&operand)) return *constant;
    constexpr double any_number = 1;
    if (auto* one = std::get_if<Value>(&operand)) {
      if (*one && is_number(type)) return any_number;
      if (*one) return tensor(*one);
      return type.kind() == c10::TypeKind::OptionalType ? c10::IValue() : c10::IValue(at::Tensor());
    }
    const auto& values = std::get<std::vector<Value>>(operand);
    if (is_list_of_numbers(type))
      return c10::List<at::Scalar>(std::vector<at::Scalar>(values.size(), any_number));
    auto element = type.castRaw<c10::ListType>() ? type.castRaw<c10::ListType>()->getElementType() : nullptr;
    if (element && element->kind() == c10::TypeKind::OptionalType) {
      c10::List<std::optional<at::Tensor>> list;
      for (Value v : values) list.push_back(v ? std::optional(tensor(v)) : std::nullopt);
      return list;
    }
    c10::List<at::Tensor> list;
    for (Value v : values) list.push_back(v ? tensor(v) : at::Tensor());
    return list;
  }

  at::Tensor tensor(Value value) {
    const TensorMeta& meta = graph_.meta(value);
    if (meta.sizes.empty() && meta.device.is_cpu())
      for (const auto& [constant, data] : graph_.constants())
        if (constant == value && data.unsafeGetTensorImpl()->is_wrapped_number()) return data;
    if (!device_ || (device_->is_cpu() && !meta.device.is_cpu())) device_ = meta.device;
    at::Tensor made = make_meta(meta);
    const bool may_be_number = meta.sizes.empty() && meta.dtype == at::kDouble;
    if (may_be_number && is_number_of(graph_, value)) made.unsafeGetTensorImpl()->set_wrapped_number(true);
    if (meta.storage >= 0) {
      for (const auto& [storage, id] : storages_)
        if (id == meta.storage) {
          if (storage.nbytes() < made.storage().nbytes())
            storage.unsafeGetStorageImpl()->set_nbytes(made.storage().nbytes());
          made.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
          return made;
        }
    }
    storages_.emplace_back(made.storage(), meta.storage);
    return made;
  }

  Value value(const at::Tensor& tensor, c10::Device device) {
    if (!tensor.defined()) return {};
    TensorMeta meta = describe(tensor, device);
    meta.storage = storage_id(tensor.storage());
    return graph_.add_value(std::move(meta));
  }

  int32_t storage_id(const c10::Storage& storage) {
    for (const auto& [known, id] : storages_)
      if (known.is_alias_of(storage)) return id;
    int32_t next = graph_.fresh_storage();
    storages_.emplace_back(storage, next);
    return next;
  }

  Graph& graph_;
  const c10::OperatorHandle& op_;
  std::optional<c10::Device> device_;
  std::vector<std::pair<c10::Storage, int32_t>> storages_;
};

void fill_defaults(const c10::OperatorHandle& op, std::vector<Operand>& arguments) {
  const auto& wanted = op.schema().arguments();
  if (arguments.size() > wanted.size())
    throw Error(full_name(op) + " takes " + std::to_string(wanted.size()) + " arguments and was given " +
                std::to_string(arguments.size()) + ".");
  for (size_t i = arguments.size(); i < wanted.size(); ++i) {
    const auto& value = wanted[i].default_value();
    if (!value)
      throw Error(full_name(op) + " needs its argument '" + wanted[i].name() +
                  "', which has no default; give it a value.");
    arguments.emplace_back(*value);
  }
}

}  // namespace

Node& append_call(Graph& graph, const c10::OperatorHandle& op, std::vector<Operand> arguments, Phase phase) {
  if (op.schema().is_mutable())
    throw Error(full_name(op) +
                " writes its arguments and has no place in a functional graph; append its functional form.");
  fill_defaults(op, arguments);
  CallOnGraph call(graph, op);
  torch::jit::Stack stack = call.arguments(arguments);
  Devices devices = infer_shapes(op, call.device(), stack);
  std::vector<Operand> results;
  for (size_t i = 0; i < stack.size(); ++i) results.push_back(call.result(stack[i], devices[i]));
  return graph.add_node(Node{op, std::move(arguments), std::move(results), {}, phase, {}});
}

}  // namespace tandem
