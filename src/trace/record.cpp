// One operator call, from the dispatcher to a node of the graph.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/COW.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include "shapes/shapes.h"
#include "trace/known_answers.h"
#include "trace/location.h"
#include "trace/recorded_call.h"
#include "trace/refuse.h"
#include "trace/symbols.h"
#include "trace/way.h"
#include "trace/zeros.h"

namespace tandem {

void RecordedCall::run() {
  if (facts_.data_dependent) return answer_or_refuse();
  refuse_random_under_hooks();
  refuse_set_generators();
  refuse_other_memory();
  refuse_sizes_behind_autograd();
  read_arguments();
  refuse_masks();
  if (grads_ && autograd_sees_kernel_ && !tracer_.differentiating_) refuse_operators_without_formula();
  if (!tracer_.leaf_views_.empty() && !tracer_.differentiating_) refuse_views_of_leaf_views();
  find_device();
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

/// In anomaly mode the engine looks for NaN behind every node of autograd, which is for real gradients: nothing of the question stays in the graph.
bool RecordedCall::forget_check_for_nan() {
  if (!torch::autograd::AnomalyMode::is_enabled() || !torch::autograd::AnomalyMode::should_check_nan() || schema_.arguments().size() != 1) return false;
  auto& nodes = tracer_.graph_.nodes();
  const FakeImpl* asked = as_fake(stack_[first_].toTensor());
  auto is_last = [&](size_t back, const char* name) { return nodes.size() >= back && nodes[nodes.size() - back].op.operator_name().name == name; };
  if (!asked || !is_last(1, "aten::_is_any_true") || !is_last(2, "aten::isnan") || std::get<Value>(nodes.back().results[0]) != asked->value) return false;
  nodes.erase(nodes.end() - 2, nodes.end());
  return true;
}

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
    if (const at::Tensor number = behind_symbol(element); number.defined()) values.push_back(tracer_.value_of(number));
  if (values.empty()) return false;
  if (values.size() != argument.toListRef().size()) throw RunEagerly(full_name(op_) + " is given numbers that are read from tensors together with constants" + called_at());
  metas_.emplace_back(c10::List<at::Scalar>(std::vector<at::Scalar>(values.size(), any_number)));
  node_.arguments.emplace_back(std::move(values));
  return true;
}

void RecordedCall::read_constant(size_t i, const c10::IValue& argument) {
  if (argument.isStorage())
    throw UnsupportedError(full_name(op_) + " takes a storage, which has no data while tracing" + called_at() + "; use tensor operations instead");
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
    throw Error("a tensor from inside another traced function was used in " + full_name(op_) + "; it has no data: return it instead of keeping it");
  if (fake->lent_memory()) tracer_.adopt_written_memory(*fake);
  if (fake->sizes() != fake->meta.sizes()) throw RunEagerly(full_name(op_) + " is given a tensor that a kernel of libtorch resized by itself" + called_at());
  operand = fake->value;
  if (fake->zero) zero_storages_.push_back(tracer_.graph_.meta(fake->value).storage);
  if (c10::InferenceMode::is_enabled() && !fake->is_inference()) normal_storages_.push_back(tracer_.graph_.meta(fake->value).storage);
  if (tensor.requires_grad()) {
    tracer_.graph_.meta(fake->value).requires_grad = true;
    if (reads_ < 64) grads_ |= uint64_t(1) << reads_;
  }
  ++reads_;
  if (!reference_ || (fake->dim() > 0 && reference_->dim() == 0) || (fake->device().is_cuda() && reference_->device().is_cpu())) {
    refuse_mixed_devices(*fake);
    reference_ = fake;
  } else if (fake->device() != reference_->device()) {
    refuse_mixed_devices(*fake);
  }
  return fake->meta;
}

void RecordedCall::find_device() {
  device_ = asked_device_ ? *asked_device_ : reference_ ? reference_->device() : c10::Device(c10::kCPU);
  if (device_.is_cuda() && !device_.has_index()) device_ = c10::Device(c10::kCUDA, c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice().index());
}

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
at::Tensor RecordedCall::fake_of(const at::Tensor& tensor) const { return as_fake(tensor) ? tensor : tracer_.twin(tensor); }

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
  if (meta._is_zerotensor()) return as_zero(wrap_result(make_meta(meta.sizes(), meta.scalar_type()), device, operand));
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
  return lies_on(zero_storages_, meta) ? as_zero(std::move(fake)) : fake;
}

at::Tensor RecordedCall::as_zero(at::Tensor fake) {
  as_fake(fake)->zero = tracer_.met_zeros_ = true;
  return fake;
}

bool RecordedCall::lies_on(const Storages& storages, const at::Tensor& meta) const {
  return !storages.empty() && std::find(storages.begin(), storages.end(), tracer_.storage_id(meta.unsafeGetTensorImpl()->unsafe_storage())) != storages.end();
}

bool RecordedCall::is_argument(const at::Tensor& meta) const {
  auto same = [&](Value value) { return value && tracer_.graph_.meta(value).storage == tracer_.storage_id(meta.unsafeGetTensorImpl()->unsafe_storage()); };
  bool found = false;
  for_each_argument(node_, [&](Value value) { found = found || same(value); });
  return found;
}

/// Untouched pages cost nothing; whoever asks for a pointer to write gets a copy of its own, and that can be seen afterwards.
void RecordedCall::lend_memory(FakeImpl& fake) {
  constexpr int64_t most_bytes = 1 << 20;
  int64_t bytes = fake.numel() * int64_t(fake.itemsize());
  if (bytes == 0 || bytes > most_bytes) return;
  auto memory = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, c10::GetAllocator(c10::kCPU), false);
  if (auto lent = c10::impl::cow::lazy_clone_storage(*memory)) fake.lend_memory(c10::Storage(lent));
}

void RecordedCall::append_node() {
  node_.phase = tracer_.phase_;
  if (tracer_.record_locations_) node_.location = user_location();
  for (const at::Tensor& tensor : written_) made_.push_back(fake_of(tensor));
  tracer_.note_autograd(grads_, made_);
  tracer_.graph_.add_node(std::move(node_));
}

void Tracer::adopt_written_memory(FakeImpl& fake) {
  if (fake.memory_was_written()) {
    at::Tensor data(c10::make_intrusive<c10::TensorImpl>(c10::Storage(fake.lent_memory()), c10::DispatchKeySet(c10::DispatchKey::CPU), fake.dtype()));
    data.unsafeGetTensorImpl()->set_sizes_and_strides(fake.sizes(), fake.strides(), fake.storage_offset());
    // The node that made the empty tensor stays, unread; from here on the value is the data.
    Value constant = add_value(make_meta(graph_.meta(fake.value)), fake.device());
    graph_.constants().emplace_back(constant, data);
    fake.value = constant;
    fake.meta = make_meta(graph_.meta(constant));
    storage_ids_[fake.meta.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()] = graph_.meta(constant).storage;
    storages_.push_back(fake.meta.unsafeGetTensorImpl()->unsafe_storage());
  }
  fake.take_memory_back();
}

void Tracer::record_call(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (met_zeros_ && answer_for_zeros(op, stack)) return;
  if (Way* way = Way::current(); way && way->answer(op, stack)) return;
  const bool autograd_sees_kernel = c10::GradMode::is_enabled() && !c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::AutogradCPU);
  c10::impl::ExcludeDispatchKeyGuard untraced(c10::DispatchKeySet({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit}));
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  RecordedCall(*this, op, stack, autograd_sees_kernel).run();
}

}  // namespace tandem
