#include "backends/accumulate.h"

#include "backends/calls.h"
#include "graph/geometry.h"
#include "graph/uses.h"
#include "ops/facts.h"

namespace tandem {
namespace {

/// Storages that the caller can see: those of inputs and constants.
std::unordered_set<int32_t> foreign_storages(const Graph& graph) {
  std::unordered_set<int32_t> storages = storages_of_inputs(graph);
  storages.merge(storages_of_constants(graph));
  return storages;
}

bool holds_result(const TensorMeta& operand, const TensorMeta& result) {
  return operand.dtype == result.dtype && operand.device == result.device && operand.sizes == result.sizes &&
         operand.strides == result.strides && !operand.conj && !operand.neg && !operand.sizes.empty() &&
         is_dense(operand);
}

class AccumulatingCall final : public Call {
 public:
  AccumulatingCall(const CallSite& site, size_t into)
      : target_(std::get<TensorSlot>(site.arguments[into])),
        other_(std::get<TensorSlot>(site.arguments[1 - into])),
        alpha_(std::get<c10::IValue>(site.arguments[2]).toScalar()),
        into_(into),
        result_(std::get<int32_t>(site.results[0])) {}

  void run(at::Tensor* registers, torch::jit::Stack&) const override {
    at::Tensor target = target_.take(registers);
    at::Tensor other = other_.take(registers);
    // Autograd's zeros without memory cannot be written.
    bool ours = target.use_count() == 1 && !target._is_zerotensor() && target.storage().use_count() == 1;
    if (ours)
      target.add_(other, alpha_);
    else
      target = into_ == 0 ? at::add(target, other, alpha_) : at::add(other, target, alpha_);
    if (result_ >= 0) registers[result_] = std::move(target);
  }

 private:
  TensorSlot target_, other_;
  at::Scalar alpha_;
  size_t into_;
  int32_t result_;
};

}  // namespace

InPlaceAdds::InPlaceAdds(const Graph& graph, const std::vector<int32_t>& last_read)
    : targets_(graph.nodes().size(), -1) {
  static const c10::OperatorHandle add =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  const std::unordered_set<int32_t> foreign = foreign_storages(graph);
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op != add) continue;
    auto *left = std::get_if<Value>(&node.arguments[0]), *right = std::get_if<Value>(&node.arguments[1]),
         *result = std::get_if<Value>(&node.results[0]);
    auto* alpha = std::get_if<c10::IValue>(&node.arguments[2]);
    if (!left || !right || !alpha || !*left || !*right || !*result || *left == *right) continue;
    auto may_take = [&](Value v) {
      const TensorMeta& meta = graph.meta(v);
      return last_read[v.id] == int32_t(i) && meta.storage >= 0 && !foreign.contains(meta.storage) &&
             holds_result(meta, graph.meta(*result));
    };
    if (may_take(*left))
      targets_[i] = 0;
    else if (may_take(*right) && alpha->isInt() && alpha->toInt() == 1)
      targets_[i] = 1;
  }
}

std::unique_ptr<Call> make_accumulating_call(const CallSite& site, size_t into) {
  return std::make_unique<AccumulatingCall>(site, into);
}

}  // namespace tandem
