// What a recorded call is given.
#include <c10/core/InferenceMode.h>

#include "trace/recorded_call.h"
#include "trace/refuse.h"
#include "trace/symbols.h"

namespace tandem {

void RecordedCall::read_arguments() {
  size_t count = stack_.size() - first_;
  node_.arguments.reserve(count);
  metas_.reserve(count);
  for (size_t i = 0; i < count; ++i) read_argument(i, stack_[first_ + i]);
}

void RecordedCall::read_argument(size_t i, const c10::IValue& argument) {
  if (argument.isTensor()) {
    Operand operand = Value{};
    metas_.emplace_back(read_tensor(argument.toTensor(), operand));
    node_.arguments.push_back(std::move(operand));
  } else if (argument.isTensorList()) {
    std::vector<Value> values;
    c10::List<at::Tensor> metas;
    for (const at::Tensor& tensor : argument.toTensorVector()) metas.push_back(read_element(tensor, values));
    metas_.emplace_back(std::move(metas));
    node_.arguments.emplace_back(std::move(values));
  } else if (argument.isOptionalTensorList()) {
    std::vector<Value> values;
    c10::List<std::optional<at::Tensor>> metas;
    for (const std::optional<at::Tensor>& tensor : argument.toOptionalTensorVector()) {
      if (tensor && tensor->defined())
        metas.push_back(read_element(*tensor, values));
      else
        metas.push_back(std::nullopt), values.push_back(Value{});
    }
    metas_.emplace_back(std::move(metas));
    node_.arguments.emplace_back(std::move(values));
  } else if (!read_number(argument) && !read_numbers(argument)) {
    read_constant(i, argument);
  }
}

/// Which number it is makes no difference to sizes and dtypes.
constexpr double any_number = 1;

bool RecordedCall::read_number(const c10::IValue& argument) {
  const at::Tensor number = behind_symbol(argument);
  if (!number.defined()) return false;
  node_.arguments.emplace_back(tracer_.value_of(number));
  metas_.emplace_back(any_number);
  return true;
}

bool RecordedCall::read_numbers(const c10::IValue& argument) {
  if (!argument.isList() || argument.toListRef().empty()) return false;
  std::vector<Value> values;
  for (const c10::IValue& element : argument.toListRef())
    if (const at::Tensor number = behind_symbol(element); number.defined())
      values.push_back(tracer_.value_of(number));
  if (values.empty()) return false;
  if (values.size() != argument.toListRef().size())
    throw RunEagerly(full_name(op_) + " is given numbers that are read from tensors together with constants" +
                     called_at());
  metas_.emplace_back(c10::List<at::Scalar>(std::vector<at::Scalar>(values.size(), any_number)));
  node_.arguments.emplace_back(std::move(values));
  return true;
}

void RecordedCall::read_constant(size_t i, const c10::IValue& argument) {
  if (argument.isStorage())
    throw UnsupportedError(full_name(op_) + " takes a storage, which has no data while tracing" +
                           called_at() + "; use tensor operations instead");
  node_.arguments.emplace_back(argument);
  if (argument.isDevice()) asked_device_ = argument.toDevice();
  if (argument.isGenerator() || (argument.isBool() && schema_.arguments()[i].name() == "pin_memory")) {
    metas_.emplace_back();
  } else {
    metas_.emplace_back(argument);
  }
}

at::Tensor RecordedCall::read_element(const at::Tensor& tensor, std::vector<Value>& values) {
  Operand operand = Value{};
  at::Tensor meta = read_tensor(tensor, operand);
  if (auto* constant = std::get_if<c10::IValue>(&operand)) {
    values.push_back(tracer_.value_of(tracer_.twin(constant->toTensor())));
    ++reads_;
    return as_fake(tracer_.twin(tensor))->meta;
  }
  values.push_back(std::get<Value>(operand));
  return meta;
}

at::Tensor RecordedCall::read_tensor(const at::Tensor& tensor, Operand& operand) {
  if (!tensor.defined()) return tensor;
  FakeImpl* fake = as_fake(tensor);
  if (!fake) {
    // The 2.5 of `x * 2.5` stays the CPU scalar that it is: type promotion looks at it.
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      operand = c10::IValue(tensor);
      return tensor;
    }
    fake = as_fake(tracer_.twin(tensor));
  }
  if (fake->tracer != tracer_.id_)
    throw Error("a tensor from inside another traced function was used in " + full_name(op_) +
                "; it has no data: return it instead of keeping it");
  if (fake->lent_memory()) tracer_.adopt_written_memory(*fake);
  if (fake->sizes() != fake->meta.sizes())
    throw RunEagerly(full_name(op_) + " is given a tensor that a kernel of libtorch resized by itself" +
                     called_at());
  operand = fake->value;
  if (fake->zero) zero_storages_.push_back(tracer_.graph_.meta(fake->value).storage);
  if (c10::InferenceMode::is_enabled() && !fake->is_inference())
    normal_storages_.push_back(tracer_.graph_.meta(fake->value).storage);
  if (tensor.requires_grad()) {
    tracer_.graph_.meta(fake->value).requires_grad = true;
    if (reads_ < 64) grads_ |= uint64_t(1) << reads_;
  }
  ++reads_;
  if (!reference_ || (fake->dim() > 0 && reference_->dim() == 0) ||
      (fake->device().is_cuda() && reference_->device().is_cpu())) {
    refuse_mixed_devices(*fake);
    reference_ = fake;
  } else if (fake->device() != reference_->device()) {
    refuse_mixed_devices(*fake);
  }
  return fake->meta;
}

}  // namespace tandem
