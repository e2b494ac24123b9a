#include "trace/fake.h"

#include <c10/core/impl/COW.h>
#include <torch/csrc/autograd/variable.h>

#include "base/autograd.h"

namespace tandem {
namespace {

c10::DispatchKeySet keys_for(c10::Device device, const at::Tensor& meta) {
  c10::DispatchKeySet keys(
      c10::DispatchKeySet(c10::computeDispatchKey(meta.scalar_type(), std::nullopt, device)));
  keys = keys | c10::DispatchKeySet(c10::DispatchKey::Fake);
  if (meta.is_conj()) keys = keys | c10::DispatchKeySet(c10::DispatchKey::Conjugate);
  if (meta.is_neg()) keys = keys | c10::DispatchKeySet(c10::DispatchKey::Negative);
  return keys;
}

thread_local WeakFakes* copies = nullptr;

c10::intrusive_ptr<c10::TensorImpl> noted(FakePtr copy) {
  if (copies) copies->emplace_back(copy);
  return copy;
}

/// Gradients of the one are gradients of the other.
void share_history(const at::Tensor& to, const at::Tensor& from) {
  namespace impl = torch::autograd::impl;
  if (!from.is_leaf()) return impl::set_gradient_edge(to, impl::gradient_edge(from));
  to.set_requires_grad(true);
  impl::set_grad_accumulator(to, WeakNodePtr(impl::grad_accumulator(from)));
}

}  // namespace

NotedCopies::NotedCopies(WeakFakes& into) : outer_(std::exchange(copies, &into)) {}
NotedCopies::~NotedCopies() { copies = outer_; }

FakeImpl::FakeImpl(at::Tensor meta_, c10::Device device, Value value_, uint64_t tracer_)
    : TensorImpl(keys_for(device, meta_), meta_.dtype(), device),
      meta(std::move(meta_)),
      value(value_),
      tracer(tracer_) {
  storage_access_should_throw_ = true;  // code that looks there would find a null
  refresh();
}

void FakeImpl::refresh() {
  const auto* from = meta.unsafeGetTensorImpl();
  set_sizes_and_strides(from->sizes(), from->strides(), from->storage_offset());
  if (from->is_wrapped_number()) set_wrapped_number(true);
}

template <class Version>
FakePtr FakeImpl::copy(Version&& version, bool allow_metadata_change) const {
  auto copied = c10::make_intrusive<FakeImpl>(meta, device(), value, tracer);
  // Autograd's keys follow the tensor, not the mode in which it is copied.
  copied->key_set_ = key_set_;
  copied->zero = zero;
  if (!copied->is_inference()) copied->set_version_counter(std::forward<Version>(version));
  copied->set_allow_tensor_metadata_change(allow_metadata_change);
  return copied;
}

c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(const c10::VariableVersion& version,
                                                                      bool allow) const {
  return is_fake() ? noted(copy(version, allow)) : TensorImpl::shallow_copy_and_detach(version, allow);
}
c10::intrusive_ptr<c10::TensorImpl> FakeImpl::shallow_copy_and_detach(c10::VariableVersion&& version,
                                                                      bool allow) const {
  return is_fake() ? noted(copy(std::move(version), allow))
                   : TensorImpl::shallow_copy_and_detach(std::move(version), allow);
}

void FakeImpl::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& from) {
  if (!is_fake()) return TensorImpl::shallow_copy_from(from);
  auto* fake = dynamic_cast<FakeImpl*>(from.get());
  TORCH_CHECK(fake && fake->is_fake(),
              "a traced tensor cannot take over the data of a tensor from outside the trace");
  meta = fake->meta;
  value = fake->value;
  zero = fake->zero;
  data_type_ = fake->data_type_;
  refresh();
}

FakeImpl::Likeness FakeImpl::likeness() const {
  return {meta, device(), value, tracer, key_set_, version_counter(), zero};
}

at::Tensor FakeImpl::Likeness::make() const {
  auto made = c10::make_intrusive<FakeImpl>(meta, device, value, tracer);
  made->key_set_ = keys;
  made->zero = zero;
  if (!made->is_inference()) made->set_version_counter(versions);
  return at::Tensor(std::move(made));
}

/// Fakes are held weakly while a trace looks for them; what they keep alive goes with their last owner.
void FakeImpl::release_resources() {
  TensorImpl::release_resources();
  meta.reset();
}

void FakeImpl::become(const at::Tensor& real) {
  auto* from = real.unsafeGetTensorImpl();
  const bool starts_here =
      requires_grad() && at::Tensor(c10::intrusive_ptr<TensorImpl>::reclaim_copy(this)).is_leaf();
  set_autograd_meta(nullptr);
  if (from->is_inference())
    copy_tensor_metadata(from, this, c10::VariableVersion(0), true);
  else
    copy_tensor_metadata(from, this, from->version_counter(), true);
  meta.reset();
  at::Tensor self(c10::intrusive_ptr<TensorImpl>::reclaim_copy(this));
  if (real.requires_grad())
    share_history(self, real);
  else if (starts_here)
    self.set_requires_grad(true);
}

void FakeImpl::lend_memory(c10::Storage storage) {
  storage_ = std::move(storage);
  storage_access_should_throw_ = false;
}

bool FakeImpl::memory_was_written() const {
  return storage_ && !c10::impl::cow::is_cow_data_ptr(storage_.unsafeGetStorageImpl()->data_ptr());
}

void FakeImpl::take_memory_back() {
  storage_ = c10::Storage();
  storage_access_should_throw_ = true;
}

FakeImpl* as_fake(const at::Tensor& tensor) {
  auto* impl = tensor.unsafeGetTensorImpl();
  return impl->key_set().has(c10::DispatchKey::Fake) ? dynamic_cast<FakeImpl*>(impl) : nullptr;
}

}  // namespace tandem
