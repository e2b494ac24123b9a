#include "trace/fake.h"

#include <c10/core/impl/COW.h>

namespace tandem {
namespace {

c10::DispatchKeySet keys_for(c10::Device device, const at::Tensor& meta) {
  c10::DispatchKeySet keys(c10::DispatchKeySet(c10::computeDispatchKey(meta.scalar_type(), std::nullopt, device)));
  keys = keys | c10::DispatchKeySet(c10::DispatchKey::Fake);
  if (meta.is_conj()) keys = keys | c10::DispatchKeySet(c10::DispatchKey::Conjugate);
  if (meta.is_neg()) keys = keys | c10::DispatchKeySet(c10::DispatchKey::Negative);
  return keys;
}

}  // namespace

FakeImpl::FakeImpl(at::Tensor meta_, c10::Device device, Value value_, uint64_t tracer_)
    : TensorImpl(keys_for(device, meta_), meta_.dtype(), device), meta(std::move(meta_)), value(value_), tracer(tracer_) {
  storage_access_should_throw_ = true;      // code that looks there would find a null
  refresh();
}

void FakeImpl::refresh() {
  const auto* from = meta.unsafeGetTensorImpl();
  set_sizes_and_strides(from->sizes(), from->strides(), from->storage_offset());
  if (from->is_wrapped_number()) set_wrapped_number(true);
}

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> FakeImpl::copy(Version&& version, bool allow_metadata_change) const {
  auto copied = c10::make_intrusive<FakeImpl>(meta, device(), value, tracer);
  // Autograd's keys follow the tensor, not the mode in which it is copied.
  copied->key_set_ = key_set_;
  copied->zero = zero;
  if (!copied->is_inference()) copied->set_version_counter(std::forward<Version>(version));
  copied->set_allow_tensor_metadata_change(allow_metadata_change);
  return copied;
}

c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(const c10::VariableVersion& version, bool allow) const { return copy(version, allow); }
c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(c10::VariableVersion&& version, bool allow) const {
  return copy(std::move(version), allow);
}

void FakeImpl::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& from) {
  auto* fake = dynamic_cast<FakeImpl*>(from.get());
  TORCH_CHECK(fake, "a traced tensor cannot take over the data of a tensor from outside the trace");
  meta = fake->meta;
  value = fake->value;
  zero = fake->zero;
  data_type_ = fake->data_type_;
  refresh();
}

void FakeImpl::lend_memory(c10::Storage storage) {
  storage_ = std::move(storage);
  storage_access_should_throw_ = false;
}

bool FakeImpl::memory_was_written() const { return storage_ && !c10::impl::cow::is_cow_data_ptr(storage_.unsafeGetStorageImpl()->data_ptr()); }

void FakeImpl::take_memory_back() {
  storage_ = c10::Storage();
  storage_access_should_throw_ = true;
}

FakeImpl* as_fake(const at::Tensor& tensor) {
  auto* impl = tensor.unsafeGetTensorImpl();
  return impl->key_set().has(c10::DispatchKey::Fake) ? dynamic_cast<FakeImpl*>(impl) : nullptr;
}

at::Tensor alias_meta(const at::Tensor& meta) {
  auto* impl = meta.unsafeGetTensorImpl();
  return at::Tensor(impl->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

}  // namespace tandem
