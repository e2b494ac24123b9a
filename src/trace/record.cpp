// One operator call, from the dispatcher to a node of the graph.
#include <ATen/SequenceNumber.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include "shapes/shapes.h"
#include "trace/known_answers.h"
#include "trace/location.h"
#include "trace/recorded_call.h"
#include "trace/refuse.h"
#include "trace/saved_hooks.h"
#include "trace/way.h"
#include "trace/zeros.h"

namespace tandem {

void RecordedCall::run() {
  if (facts_.data_dependent) return answer_or_refuse();
  refuse_other_memory();
  refuse_sizes_behind_autograd();
  read_arguments();
  refuse_masks();
  if (grads_ && autograd_sees_kernel_ && !tracer_.differentiating_) refuse_operators_without_formula();
  if (!tracer_.leaf_views_.empty() && !tracer_.differentiating_) refuse_views_of_leaf_views();
  find_device();
  if (facts_.random && !drops_nothing()) find_state();
  refuse_results_over_operands();
  prepare_written_arguments();
  Devices devices = infer_shapes(op_, device_, metas_);
  for (c10::Device& device : devices)
    if (device.type() == device_.type()) device = device_;
  note_writes();
  push_results(devices);
  append_node();
}

/// Two names of one tensor are equal whatever the data; everything else would be a guess.
void RecordedCall::answer_or_refuse() {
  if (forget_check_for_nan()) {
    torch::jit::drop(stack_, 1);
    stack_.emplace_back(at::Scalar(false));
    return;
  }
  if (answer_knowing()) return;
  if (schema_.name() != "aten::equal") refuse_data_dependent(op_);
  const at::Tensor &a = stack_[first_].toTensor(), &b = stack_[first_ + 1].toTensor();
  FakeImpl *fake_a = as_fake(a), *fake_b = as_fake(b);
  if (!fake_a || !fake_b || !(fake_a->value == fake_b->value)) refuse_data_dependent(op_);
  torch::jit::drop(stack_, 2);
  stack_.emplace_back(true);
}

bool RecordedCall::answer_knowing() {
  if (schema_.name() != "aten::_local_scalar_dense") return false;
  const FakeImpl* asked = as_fake(stack_[first_].toTensor());
  const std::optional<bool> answer = asked ? known_answer(tracer_.graph_, asked->value) : std::nullopt;
  if (!answer) return false;
  torch::jit::drop(stack_, 1);
  stack_.emplace_back(at::Scalar(*answer));
  return true;
}

/// In anomaly mode the engine looks for NaN behind every node of autograd, which is for real gradients:
/// nothing of the question stays in the graph.
bool RecordedCall::forget_check_for_nan() {
  if (!torch::autograd::AnomalyMode::is_enabled() || !torch::autograd::AnomalyMode::should_check_nan() ||
      schema_.arguments().size() != 1)
    return false;
  auto& nodes = tracer_.graph_.nodes();
  const FakeImpl* asked = as_fake(stack_[first_].toTensor());
  auto is_last = [&](size_t back, const char* name) {
    return nodes.size() >= back && nodes[nodes.size() - back].op.operator_name().name == name;
  };
  if (!asked || !is_last(1, "aten::_is_any_true") || !is_last(2, "aten::isnan") ||
      std::get<Value>(nodes.back().results[0]) != asked->value)
    return false;
  nodes.erase(nodes.end() - 2, nodes.end());
  return true;
}

void RecordedCall::find_device() {
  device_ = asked_device_ ? *asked_device_ : reference_ ? reference_->device() : c10::Device(c10::kCPU);
  if (device_.is_cuda() && !device_.has_index())
    device_ = c10::Device(c10::kCUDA, c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice().index());
}

void RecordedCall::append_node() {
  node_.phase = tracer_.phase_;
  if (tracer_.record_locations_) node_.location = user_location();
  for (const at::Tensor& tensor : written_) made_.push_back(fake_of(tensor));
  tracer_.note_autograd(grads_, made_);
  tracer_.graph_.add_node(std::move(node_));
}

void Tracer::note_autograd(uint64_t grads, c10::ArrayRef<at::Tensor> made) {
  if (differentiating_) return;
  note_known();
  for (const at::Tensor& tensor : made) just_made_.emplace_back(FakePtr::reclaim_copy(as_fake(tensor)));
  autograd_clock_.push_back(at::sequence_number::peek());
  modes_.push_back({c10::GradMode::is_enabled(), grads});
  met_saved_tensor_hooks_ = met_saved_tensor_hooks_ || saved_hooks_are_set();
  met_hosts_hooks_ = met_hosts_hooks_ || python_saved_hooks_are_set();
}

void Tracer::note_known() {
  for (const auto& weak : just_made_)
    if (const FakePtr fake = weak.lock(); fake && fake->requires_grad())
      autograd_events_.push_back({modes_.size(), fake->value, AutogradEvent::Kind::Known});
  just_made_.clear();
}

void Tracer::refuse_in_the_end(const std::string& reason) {
  if (differentiating_) throw RunEagerly(reason);
  if (refusal_.empty()) refusal_ = reason;
}

void Tracer::note_detaching(const at::Tensor& tensor) {
  if (differentiating_) return;
  const FakeImpl* fake = as_fake(tensor);
  auto is_this = [&](const TracedInput& input) { return input.visible.is_same(tensor); };
  // of what shares memory with other inputs autograd may know more; a copy by `data()` is not what it copies
  if (!fake || (!fake->requires_grad() && std::none_of(inputs_.begin(), inputs_.end(), is_this))) return;
  note_known();
  autograd_events_.push_back({modes_.size(), fake->value, AutogradEvent::Kind::Detached});
}

void Tracer::adopt_written_memory(FakeImpl& fake) {
  if (fake.memory_was_written()) {
    at::Tensor data(c10::make_intrusive<c10::TensorImpl>(
        c10::Storage(fake.lent_memory()), c10::DispatchKeySet(c10::DispatchKey::CPU), fake.dtype()));
    data.unsafeGetTensorImpl()->set_sizes_and_strides(fake.sizes(), fake.strides(), fake.storage_offset());
    // The node that made the empty tensor stays, unread; from here on the value is the data.
    Value constant = add_value(make_meta(graph_.meta(fake.value)), fake.device());
    graph_.constants().emplace_back(constant, data);
    fake.value = constant;
    fake.meta = make_meta(graph_.meta(constant));
    storage_ids_[fake.meta.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()] =
        graph_.meta(constant).storage;
    storages_.push_back(fake.meta.unsafeGetTensorImpl()->unsafe_storage());
  }
  fake.take_memory_back();
}

void Tracer::record_call(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (met_zeros_ && answer_for_zeros(op, stack)) return;
  if (Way* way = Way::current(); way && way->answer(op, stack)) return;
  const bool autograd_sees_kernel =
      c10::GradMode::is_enabled() &&
      !c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::AutogradCPU);
  c10::impl::ExcludeDispatchKeyGuard untraced(
      c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}));
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  RecordedCall(*this, op, stack, autograd_sees_kernel).run();
}

}  // namespace tandem
