#include "trace/way.h"

#include <ATen/ATen.h>

#include <unordered_map>

#include "trace/refuse.h"

namespace tandem {
namespace {

thread_local Way* current_way = nullptr;

/// A condition of one element for each matrix, beside tensors of matrices.
at::Tensor beside(at::Tensor condition, const at::Tensor& tensor) {
  while (condition.dim() > 0 && condition.dim() < tensor.dim()) condition = condition.unsqueeze(-1);
  return condition;
}

}  // namespace

Way::Way(Question question, size_t way, Until until)
    : question_(question), way_(way), until_(until), outer_(current_way) {
  current_way = this;
}

Way::~Way() { current_way = outer_; }

Way* Way::current() { return current_way; }

bool Way::answer(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  using Answer = bool (Way::*)(torch::jit::Stack&);
  static const std::unordered_map<std::string, Answer> answers = {
      {"aten::_local_scalar_dense", &Way::answer_number},
      {"aten::nonzero", &Way::answer_places},
      {"aten::index", &Way::answer_part},
      {"aten::masked_select", &Way::select},
      {"aten::masked_scatter_", &Way::scatter},
      {"aten::sum", &Way::sum}};
  const auto found = answers.find(op.schema().name());
  if (found != answers.end() && (this->*found->second)(stack)) return true;
  if (reads_selected(op.schema().arguments().size(), stack)) refuse_data_dependent(op);
  return false;
}

/// It has another size than what it stands for, which only those may read that know.
bool Way::reads_selected(size_t count, const torch::jit::Stack& stack) const {
  if (!selected_.defined()) return false;
  auto is_selected = [this](const at::Tensor& tensor) { return tensor.is_same(selected_); };
  return std::any_of(stack.end() - int64_t(count), stack.end(), [&](const c10::IValue& argument) {
    if (argument.isTensor()) return is_selected(argument.toTensor());
    if (!argument.isTensorList()) return false;
    const auto list = argument.toTensorVector();
    return std::any_of(list.begin(), list.end(), is_selected);
  });
}

/// A formula that asks twice is not one that we know.
bool Way::take(const at::Tensor& about) {
  if (asked_.defined()) return false;
  asked_ = about;
  if (until_ == Until::Asked) throw Asked();
  return true;
}

bool Way::answer_number(torch::jit::Stack& stack) {
  const bool one_matrix =
      question_ == Question::WhichMatrices && stack.back().toTensor().scalar_type() == at::kBool;
  if ((question_ != Question::IsZero && !one_matrix) || !take(stack.back().toTensor())) return false;
  const bool whole = at::isIntegralType(asked_.scalar_type(), /*includeBool=*/false);
  stack.back() = asked_.scalar_type() == at::kBool ? at::Scalar(way_ != 0)
                 : whole                           ? at::Scalar(int64_t(way_))
                                                   : at::Scalar(double(way_));
  return true;
}

/// The formulas look at how many places there are, not at where they are.
bool Way::answer_places(torch::jit::Stack& stack) {
  if (question_ != Question::HowManyZeros || !take(stack.back().toTensor())) return false;
  stack.back() = at::empty({int64_t(way_), asked_.dim()}, asked_.options().dtype(at::kLong));
  return true;
}

/// Of the matrices that a mask chooses they look at how many there are.
bool Way::answer_part(torch::jit::Stack& stack) {
  const auto indices = stack.back().toOptionalTensorVector();
  if (question_ != Question::WhichMatrices || indices.size() != 1 || !indices[0] ||
      indices[0]->scalar_type() != at::kBool || !take(*indices[0]))
    return false;
  torch::jit::drop(stack, 1);
  const at::Tensor matrices = stack.back().toTensor();
  std::vector<int64_t> sizes = matrices.sizes().slice(size_t(asked_.dim())).vec();
  sizes.insert(sizes.begin(), int64_t(way_) * asked_.numel());
  stack.back() = at::empty(sizes, matrices.options());
  return true;
}

/// What a mask selects stays in its place, and is no part of what the other elements are.
bool Way::select(torch::jit::Stack& stack) {
  const at::Tensor mask = torch::jit::pop(stack).toTensor(), from = torch::jit::pop(stack).toTensor();
  mask_ = mask;
  selected_ = from.expand(mask.sizes());
  stack.emplace_back(selected_);
  return true;
}

bool Way::scatter(torch::jit::Stack& stack) {
  const size_t first = stack.size() - 3;
  at::Tensor self = stack[first].toTensor();
  const at::Tensor mask = stack[first + 1].toTensor(), source = stack[first + 2].toTensor();
  if (!selected_.is_same(source) || !mask_.is_same(mask)) return false;
  selected_.reset();
  self.copy_(at::where(mask, source, self));
  torch::jit::drop(stack, 2);
  return true;
}

bool Way::sum(torch::jit::Stack& stack) {
  c10::IValue& summed = stack[stack.size() - 2];
  if (!selected_.defined() || !summed.isTensor() || !selected_.is_same(summed.toTensor())) return false;
  const at::Tensor selected = std::exchange(selected_, at::Tensor());
  summed = at::where(mask_, selected, at::zeros({}, selected.options()));
  return false;
}

Tensors conditions_of(Question question, const at::Tensor& asked) {
  if (question == Question::IsZero) return {asked.eq(0)};
  if (question == Question::WhichMatrices) return {asked.logical_not()};
  const at::Tensor count = asked.sum();
  return {count.eq(0), count.eq(1)};
}

Tensors without_others(Question question, const Tensors& conditions, Tensors parts) {
  const at::Tensor& first = parts[0];
  if (question != Question::WhichMatrices || !first.defined() || first.dim() != conditions[0].dim() + 2)
    return parts;
  const at::Tensor harmless = at::eye(first.size(-2), first.size(-1), first.options()),
                   goes_first = beside(conditions[0], first);
  return {at::where(goes_first, parts[0], harmless), at::where(goes_first, harmless, parts[1])};
}

at::Tensor choose(const Tensors& conditions, Tensors results) {
  const auto known =
      std::find_if(results.begin(), results.end(), [](const at::Tensor& result) { return result.defined(); });
  if (known == results.end()) return {};
  for (at::Tensor& result : results)
    if (!result.defined()) result = at::zeros_like(*known);
  at::Tensor chosen = results.back();
  for (size_t way = conditions.size(); way-- > 0;)
    chosen = at::where(beside(conditions[way], chosen), results[way], chosen);
  return chosen;
}

}  // namespace tandem
