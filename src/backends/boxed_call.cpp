#include "backends/calls.h"
#include "graph/boxing.h"

namespace tandem {
namespace {

/// A tensor that is not there is None where the schema allows it, else an undefined tensor.
c10::IValue box(const TensorSlot& slot, bool optional, at::Tensor* registers) {
  at::Tensor tensor = slot.take(registers);
  if (optional && !tensor.defined()) return {};
  return tensor;
}

c10::IValue box(const std::vector<TensorSlot>& slots, bool of_optionals, at::Tensor* registers) {
  if (!of_optionals) {
    c10::List<at::Tensor> list;
    list.reserve(slots.size());
    for (const TensorSlot& slot : slots) list.push_back(slot.take(registers));
    return list;
  }
  c10::List<std::optional<at::Tensor>> list;
  list.reserve(slots.size());
  for (const TensorSlot& slot : slots) {
    at::Tensor tensor = slot.take(registers);
    list.push_back(tensor.defined() ? std::optional<at::Tensor>(std::move(tensor)) : std::nullopt);
  }
  return list;
}

c10::IValue box_numbers(const std::vector<TensorSlot>& slots, at::Tensor* registers) {
  c10::List<at::Scalar> list;
  for (const TensorSlot& slot : slots) list.push_back(slot.take(registers).item());
  return list;
}

at::Tensor unbox(c10::IValue&& value) {
  return value.isTensor() ? std::move(value).toTensor() : at::Tensor();
}

void store(const std::vector<int32_t>& slots, const c10::IValue& value, at::Tensor* registers) {
  c10::ArrayRef<c10::IValue> list = value.toListRef();
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i] >= 0) registers[slots[i]] = unbox(c10::IValue(list[i]));
}

class BoxedCall final : public Call {
 public:
  explicit BoxedCall(CallSite site) : site_(std::move(site)) {
    for (const c10::Argument& argument : site_.op.schema().arguments()) {
      of_optionals_.push_back(is_list_of_optionals(argument));
      optional_.push_back(is_optional(argument));
      number_.push_back(is_number(*argument.type()) || is_list_of_numbers(*argument.type()));
    }
  }

  void run(at::Tensor* registers, torch::jit::Stack& stack) const override {
    for (const auto& [before, after] : site_.writes) registers[after] = before.peek(registers);
    push_arguments(registers, stack);
    site_.op.callBoxed(stack);
    store_results(registers, stack);
    stack.clear();
  }

 private:
  void push_arguments(at::Tensor* registers, torch::jit::Stack& stack) const {
    for (size_t i = 0; i < site_.arguments.size(); ++i) {
      const ArgumentSlot& argument = site_.arguments[i];
      if (auto* constant = std::get_if<c10::IValue>(&argument))
        stack.push_back(*constant);
      else if (auto* slot = std::get_if<TensorSlot>(&argument))
        stack.push_back(number_[i] ? c10::IValue(slot->take(registers).item())
                                   : box(*slot, optional_[i], registers));
      else if (number_[i])
        stack.push_back(box_numbers(std::get<std::vector<TensorSlot>>(argument), registers));
      else
        stack.push_back(box(std::get<std::vector<TensorSlot>>(argument), of_optionals_[i], registers));
    }
  }

  void store_results(at::Tensor* registers, torch::jit::Stack& stack) const {
    for (size_t i = 0; i < site_.results.size(); ++i) {
      if (auto* list = std::get_if<std::vector<int32_t>>(&site_.results[i]))
        store(*list, stack[i], registers);
      else if (int32_t index = std::get<int32_t>(site_.results[i]); index >= 0)
        registers[index] = unbox(std::move(stack[i]));
    }
  }

  CallSite site_;
  std::vector<bool> of_optionals_, optional_, number_;
};

}  // namespace

std::unique_ptr<Call> make_boxed_call(CallSite site) { return std::make_unique<BoxedCall>(std::move(site)); }

}  // namespace tandem
