// What a recorded call writes and returns.
#include <ATen/core/List.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/COW.h>

#include "trace/recorded_call.h"

namespace tandem {

/// A write may change geometry; copies that autograd keeps must not see that.
void RecordedCall::prepare_written_arguments() {
  for (int i : facts_.written) {
    if (is_hidden_write(i) && !hidden_writes_happen()) continue;
    const c10::IValue& argument = stack_[first_ + i];
    if (argument.isTensor() && argument.toTensor().defined()) {
      written_.push_back(argument.toTensor());
      metas_[i] = prepare_written(argument.toTensor());
    } else if (argument.isTensorList()) {
      c10::List<at::Tensor> metas;
      for (const at::Tensor& tensor : argument.toTensorVector()) {
        refuse_list_write_to_view(tensor);
        written_.push_back(tensor);
        metas.push_back(prepare_written(tensor));
      }
      metas_[i] = std::move(metas);
    }
  }
}

/// In a backward real tensors that the program captured turn up as they are.
at::Tensor RecordedCall::fake_of(const at::Tensor& tensor) const {
  return as_fake(tensor) ? tensor : tracer_.twin(tensor);
}

at::Tensor RecordedCall::prepare_written(const at::Tensor& tensor) {
  FakeImpl* fake = as_fake(fake_of(tensor));
  if (fake->meta.use_count() > 1) fake->meta = alias_meta(fake->meta);
  return fake->meta;
}

/// Running statistics are written in training only.
bool RecordedCall::hidden_writes_happen() const {
  auto training = schema_.argumentIndexWithName("training");
  if (!training) training = schema_.argumentIndexWithName("train");
  return !training || stack_[first_ + *training].toBool();
}

void RecordedCall::note_writes() {
  for (const at::Tensor& tensor : written_) {
    const at::Tensor holder = fake_of(tensor);
    FakeImpl* fake = as_fake(holder);
    Value before = fake->value;
    TensorMeta now = describe(fake->meta, fake->device());
    now.storage = tracer_.storage_id(fake->meta.unsafeGetTensorImpl()->unsafe_storage());
    const TensorMeta& then = tracer_.graph_.meta(before);
    if (now.storage != then.storage || !same_geometry(now, then)) {
      if (now.sizes != then.sizes && !facts_.changes_metadata) refuse_resized_result(holder, before);
      refuse_other_sizes_of_a_capture(holder);
      now.requires_grad = then.requires_grad;
      fake->value = tracer_.graph_.add_value(std::move(now));
      fake->refresh();
    }
    node_.writes.emplace_back(before, fake->value);
  }
  count_list_writes();
}

/// In eager a list operator counts versions in the kernels of its elements, which do not run here.
void RecordedCall::count_list_writes() const {
  if (!facts_.counts_writes || op_.hasKernelForDispatchKey(c10::DispatchKey::ADInplaceOrView)) return;
  for (int i : facts_.written) {
    if (!stack_[first_ + i].isTensorList()) continue;
    for (const at::Tensor& tensor : stack_[first_ + i].toTensorVector()) {
      const at::Tensor holder = fake_of(tensor);
      if (!holder.is_inference()) holder.unsafeGetTensorImpl()->bump_version();
    }
  }
}

void RecordedCall::push_results(const Devices& devices) {
  torch::jit::drop(stack_, schema_.arguments().size());
  node_.results.reserve(metas_.size());
  for (size_t i = 0; i < metas_.size(); ++i) {
    c10::IValue& result = metas_[i];
    if (result.isTensor()) {
      Operand operand = Value{};
      stack_.emplace_back(wrap_result(result.toTensor(), devices[i], operand));
      node_.results.push_back(std::move(operand));
    } else if (result.isTensorList()) {
      std::vector<Value> values;
      c10::List<at::Tensor> fakes;
      for (const at::Tensor& tensor : result.toTensorVector()) {
        Operand operand = Value{};
        fakes.push_back(wrap_result(tensor, devices[i], operand));
        values.push_back(std::get<Value>(operand));
      }
      stack_.emplace_back(std::move(fakes));
      node_.results.emplace_back(std::move(values));
    } else {
      node_.results.emplace_back(result);
      stack_.push_back(std::move(result));
    }
  }
}

at::Tensor RecordedCall::wrap_result(const at::Tensor& meta, c10::Device device, Operand& operand) {
  if (!meta.defined()) return meta;
  // Only the fake says so: shapes are asked of plain metas.
  if (meta._is_zerotensor())
    return tracer_.as_zero(wrap_result(make_meta(meta.sizes(), meta.scalar_type()), device, operand));
  for (const at::Tensor& tensor : written_)
    if (as_fake(fake_of(tensor))->meta.is_same(meta)) return tensor;
  // A result that is its own argument would share what autograd attaches to a tensor.
  // In inference mode a view of a normal tensor is a normal tensor.
  std::optional<c10::InferenceMode> normal;
  if (lies_on(normal_storages_, meta)) normal.emplace(false);
  at::Tensor fake = tracer_.wrap(meta.use_count() > 1 && is_argument(meta) ? alias_meta(meta) : meta, device);
  operand = as_fake(fake)->value;
  made_.push_back(fake);
  if (schema_.name() == "aten::empty" && device.is_cpu()) lend_memory(*as_fake(fake));
  return lies_on(zero_storages_, meta) ? tracer_.as_zero(std::move(fake)) : fake;
}

bool RecordedCall::lies_on(const Storages& storages, const at::Tensor& meta) const {
  return !storages.empty() &&
         std::find(storages.begin(), storages.end(),
                   tracer_.storage_id(meta.unsafeGetTensorImpl()->unsafe_storage())) != storages.end();
}

bool RecordedCall::is_argument(const at::Tensor& meta) const {
  auto same = [&](Value value) {
    return value && tracer_.graph_.meta(value).storage ==
                        tracer_.storage_id(meta.unsafeGetTensorImpl()->unsafe_storage());
  };
  bool found = false;
  for_each_argument(node_, [&](Value value) { found = found || same(value); });
  return found;
}

/// Untouched pages cost nothing; whoever asks for a pointer to write gets a copy of its own, and that can be
/// seen afterwards.
void RecordedCall::lend_memory(FakeImpl& fake) {
  constexpr int64_t most_bytes = 1 << 20;
  int64_t bytes = fake.numel() * int64_t(fake.itemsize());
  if (bytes == 0 || bytes > most_bytes) return;
  auto memory = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                      c10::GetAllocator(c10::kCPU), false);
  if (auto lent = c10::impl::cow::lazy_clone_storage(*memory)) fake.lend_memory(c10::Storage(lent));
}

}  // namespace tandem
