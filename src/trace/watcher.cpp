#include "trace/watcher.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <cstring>

#include "ops/facts.h"
#include "ops/generator_state.h"
#include "ops/numbers.h"
#include "trace/refuse.h"

namespace tandem {
namespace {

thread_local Watcher* current_watcher = nullptr;

constexpr c10::DispatchKeySet watched_key{c10::DispatchKey::Fake};

/// Where the recorder took another way through an operator than libtorch does, so must the run.
c10::DispatchKeySet keys_for(const Graph& record) {
  static const c10::OperatorHandle look =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_assert_async", "msg");
  const bool looks = std::any_of(record.nodes().begin(), record.nodes().end(),
                                 [](const Node& node) { return node.op == look; });
  return looks ? watched_key.add(c10::DispatchKey::DeferredInit) : watched_key;
}

/// While it lives, this thread's operators pass by a watcher; backwards inside the program stay on the
/// thread, and scripts run operator by operator.
class Watching {
 public:
  Watching(Watcher& watcher, const Graph& record)
      : outer_(std::exchange(current_watcher, &watcher)), include_(keys_for(record)) {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }
  ~Watching() {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(multithreading_);
    current_watcher = outer_;
  }

 private:
  Watcher* outer_;
  bool multithreading_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
  c10::impl::IncludeDispatchKeyGuard include_;
  torch::jit::GraphOptimizerEnabledGuard no_optimizer_{false};
};

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  if (a.device().is_cpu() && b.device().is_cpu() && a.is_contiguous() && b.is_contiguous())
    return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
  return at::equal(a, b);
}

/// Strides that address nothing are left out: kernels give them as it happens.
bool same_layout(const at::Tensor& tensor, const TensorMeta& meta) {
  if (tensor.sizes() != at::IntArrayRef(meta.sizes)) return false;
  for (size_t d = 0; d < meta.sizes.size() && tensor.numel() > 0; ++d)
    if (meta.sizes[d] > 1 && tensor.stride(int64_t(d)) != meta.strides[d]) return false;
  return true;
}

bool same_constant(const c10::IValue& a, const c10::IValue& b) {
  if (a.isTensor() != b.isTensor() || a.isGenerator() != b.isGenerator() || a.isDouble() != b.isDouble())
    return false;
  if (a.isTensor())
    return a.toTensor().defined() == b.toTensor().defined() &&
           (!a.toTensor().defined() || same_bits(a.toTensor(), b.toTensor()));
  if (a.isGenerator()) return a.toGenerator() == b.toGenerator();
  if (a.isDouble()) {
    const double x = a.toDouble(), y = b.toDouble();
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  return a == b;
}

std::string shown(const c10::IValue& constant) {
  std::ostringstream text;
  if (constant.isTensor() && constant.toTensor().defined() && constant.toTensor().dim() == 0)
    text << constant.toTensor().item().toDouble();
  else if (constant.isDouble())
    text << constant.toDouble();
  else
    text << constant;
  return text.str();
}

}  // namespace

Watcher* Watcher::current() { return current_watcher; }

Watcher::Watcher(const Graph& record, const Tensors& inputs) : record_(record) {
  int32_t storages = 0;
  for (size_t v = 0; v < record.value_count(); ++v)
    storages = std::max(storages, record.meta(Value{int32_t(v)}).storage + 1);
  memory_.resize(size_t(storages));
  is_input_.resize(size_t(storages));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    bind(record.inputs()[i], inputs[i]);
    is_input_[size_t(record.meta(record.inputs()[i]).storage)] = true;
  }
}

void Watcher::watch(const std::function<Tensors()>& program, const std::vector<Value>& outputs) {
  // Casts of before would be missing among the operators.
  at::autocast::clear_cache();
  Tensors returned;
  {
    Watching watching(*this, record_);
    returned = program();
  }
  if (difference_.empty()) follow_numbers();
  if (difference_.empty() && next_ < record_.nodes().size())
    differs("it ended before " + to_string(record_, record_.nodes()[next_]));
  for (size_t i = 0; i < returned.size() && i < outputs.size(); ++i)
    compare_tensor(outputs[i], returned[i], "output " + std::to_string(i));
}

void Watcher::see(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack) {
  c10::impl::ExcludeDispatchKeyGuard unwatched(watched_key.add(c10::DispatchKey::DeferredInit));
  // What looks at data was answered while the program was traced, and not recorded.
  const bool follows = difference_.empty() && !facts(op).data_dependent;
  if (follows) follow_numbers();
  if (follows && difference_.empty()) compare_call(op, stack);
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake),
                     &stack);
  if (!follows || !difference_.empty()) return;
  const Node& node = record_.nodes()[next_++];
  const size_t first = stack.size() - node.results.size();
  for (size_t r = 0; r < node.results.size(); ++r) read_result(node.results[r], stack[first + r]);
}

/// Autograd adds gradients up in place where nobody else has them, which it does not know of fakes.
bool Watcher::is_sum_in_place(const c10::OperatorHandle& op) const {
  static const c10::OperatorHandle add =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  static const c10::OperatorHandle add_in_place =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::add_", "Tensor");
  return op == add_in_place && record_.nodes()[next_].op == add;
}

void Watcher::compare_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (next_ >= record_.nodes().size()) return differs("it goes on with " + full_name(op));
  const Node& node = record_.nodes()[next_];
  if (!(op == node.op) && !is_sum_in_place(op))
    return differs("it calls " + full_name(op) + " where it called " + full_name(node.op));
  const size_t count = node.arguments.size(), first = stack.size() - count;
  for (size_t a = 0; a < count && difference_.empty(); ++a)
    compare_argument(node.arguments[a], stack[first + a], node.op.schema().arguments()[a].name());
}

/// The program computes them by itself, between two operators; the tensors that they come from hold now what
/// they held then.
void Watcher::follow_numbers() {
  auto is_no_call = [](const Node& node) { return makes_number(node.op) || reads_generator(node.op); };
  for (; next_ < record_.nodes().size() && is_no_call(record_.nodes()[next_]); ++next_) {
    const Node& node = record_.nodes()[next_];
    if (reads_generator(node.op)) continue;
    torch::jit::Stack stack;
    for (const Operand& argument : node.arguments) {
      const auto* constant = std::get_if<c10::IValue>(&argument);
      stack.push_back(constant ? *constant : c10::IValue(content(argument)));
      if (stack.back().isTensor() && !stack.back().toTensor().defined())
        return differs("the memory that a number was read from is gone");
    }
    node.op.callBoxed(stack);
    numbers_[std::get<Value>(node.results[0]).id] = stack[0].toTensor();
  }
}

at::Tensor Watcher::content(const Operand& recorded) const {
  const Value value = std::get<Value>(recorded);
  if (is_number(value)) return numbers_.at(value.id);
  const TensorMeta& meta = record_.meta(value);
  const Memory& memory = memory_[size_t(meta.storage)];
  const auto storage = memory.storage.lock();
  if (!storage) return {};
  at::NoGradGuard no_grad;
  return at::empty({0}, at::TensorOptions().dtype(meta.dtype).device(meta.device))
      .set_(c10::Storage(storage), meta.offset + memory.offset, meta.sizes, meta.strides);
}

void Watcher::compare_number(Value recorded, const c10::IValue& argument, const std::string& name) {
  const at::Tensor& number = numbers_.at(recorded.id);
  const bool is_there = argument.isScalar() || (argument.isTensor() && argument.toTensor().defined() &&
                                                argument.toTensor().numel() == 1);
  if (!is_there) return differs(name + " is no number");
  const c10::IValue computed = number.item(),
                    given = argument.isScalar() ? argument : c10::IValue(argument.toTensor().item());
  if (!same_constant(computed, given))
    differs(name + " is " + shown(given) + " where what was recorded gives " + shown(computed));
}

void Watcher::compare_argument(const Operand& recorded, const c10::IValue& argument,
                               const std::string& name) {
  if (auto* value = std::get_if<Value>(&recorded)) {
    if (is_number(*value)) return compare_number(*value, argument, name);
    if (argument.isTensor() || argument.isNone())
      return compare_tensor(*value, argument.isTensor() ? argument.toTensor() : at::Tensor(), name);
    return differs(name + " is no tensor");
  }
  if (auto* values = std::get_if<std::vector<Value>>(&recorded)) {
    if (!argument.isList()) return differs(name + " is no list of tensors");
    const auto list = argument.toListRef();
    if (list.size() != values->size()) return differs(name + " has another length");
    for (size_t i = 0; i < list.size() && difference_.empty(); ++i)
      if (is_number((*values)[i]))
        compare_number((*values)[i], list[i], name);
      else
        compare_tensor((*values)[i], list[i].isTensor() ? list[i].toTensor() : at::Tensor(), name);
    return;
  }
  compare_constant(std::get<c10::IValue>(recorded), argument, name);
}

void Watcher::compare_constant(const c10::IValue& recorded, const c10::IValue& argument,
                               const std::string& name) {
  if (!same_constant(recorded, argument))
    differs(name + " is " + shown(argument) + " where it was " + shown(recorded));
}

const at::Tensor* Watcher::constant(Value value) const {
  for (const auto& [constant, data] : record_.constants())
    if (record_.meta(constant).storage == record_.meta(value).storage) return &data;
  return nullptr;
}

void Watcher::compare_tensor(Value recorded, const at::Tensor& tensor, const std::string& name) {
  if (!difference_.empty()) return;
  if (!recorded || !tensor.defined()) {
    if (bool(recorded) != tensor.defined())
      differs(name +
              (tensor.defined() ? " is a tensor where there was none" : " is no tensor where there was one"));
    return;
  }
  const TensorMeta& meta = record_.meta(recorded);
  if (!tensor.has_storage()) return differs(name + " is a tensor of another kind");
  if (tensor.scalar_type() != meta.dtype || tensor.device() != meta.device || !same_layout(tensor, meta))
    return differs(name + " has another dtype, device, size or layout");
  Memory& memory = memory_[size_t(meta.storage)];
  if (!memory.storage._unsafe_get_target()) {
    // Memory that the record took for a constant.
    const at::Tensor* data = constant(recorded);
    if (!data || (data->sizes() == tensor.sizes() && !same_bits(*data, tensor)))
      return differs(name + " holds other numbers, which it made without an operator");
    return bind(recorded, tensor);
  }
  if (tensor.storage().unsafeGetStorageImpl() != memory.storage._unsafe_get_target() ||
      tensor.storage_offset() - meta.offset != memory.offset)
    differs(name + (is_input_[size_t(meta.storage)]
                        ? " is another tensor than the one that was captured or given"
                        : " is another tensor, computed elsewhere"));
}

void Watcher::bind(Value value, const at::Tensor& tensor) {
  if (!tensor.has_storage()) return;
  const TensorMeta& meta = record_.meta(value);
  memory_[size_t(meta.storage)] = {
      c10::weak_intrusive_ptr<c10::StorageImpl>(
          c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(tensor.storage().unsafeGetStorageImpl())),
      tensor.storage_offset() - meta.offset};
}

void Watcher::read_result(const Operand& recorded, const c10::IValue& result) {
  if (auto* value = std::get_if<Value>(&recorded)) {
    if (*value && result.isTensor() && result.toTensor().defined()) bind(*value, result.toTensor());
  } else if (auto* values = std::get_if<std::vector<Value>>(&recorded)) {
    const auto list = result.toListRef();
    for (size_t i = 0; i < values->size() && i < list.size(); ++i)
      if ((*values)[i] && list[i].isTensor() && list[i].toTensor().defined())
        bind((*values)[i], list[i].toTensor());
  } else if (!same_constant(std::get<c10::IValue>(recorded), result)) {
    differs("a result is " + shown(result) + " where it was " + shown(std::get<c10::IValue>(recorded)));
  }
}

void Watcher::differs(const std::string& how) {
  if (!difference_.empty()) return;
  const bool at_operator = next_ < record_.nodes().size();
  difference_ = (at_operator ? "in " + full_name(record_.nodes()[next_].op) + ", operator " +
                                   std::to_string(next_) + ": "
                             : "") +
                how + (at_operator ? called_at() : "");
}

}  // namespace tandem
