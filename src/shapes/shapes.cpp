#include "shapes/shapes.h"

#include "ops/facts.h"
#include "shapes/knowledge.h"
#include "shapes/rules/helpers.h"
#include "shapes/stand_in.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <tandem/error.h>

namespace tandem {
namespace {

/// What eager checks before it writes a result into a tensor that is already there.
void check_fits(const at::Tensor& target, const at::Tensor& result) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), target.scalar_type()),
              std::string("result type ") + c10::toString(result.scalar_type()) +
                  " can't be cast to the desired output type " + c10::toString(target.scalar_type()));
}

/// False when the result does not fit.
bool write_in_place(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  const at::Tensor& result = call.results[0].toTensor();
  if (self.sizes() != result.sizes()) return false;
  check_fits(self, result);
  call.results.assign(1, call.arguments[0]);
  return true;
}

void write_out(ShapeCall& call) {
  size_t inputs = call.arguments.size() - call.results.size();
  for (size_t i = 0; i < call.results.size(); ++i) {
    const at::Tensor& target = call.tensor(inputs + i);
    const at::Tensor& result = call.results[i].toTensor();
    check_fits(target, result);
    if (target.sizes() != result.sizes()) {
      auto* impl = target.unsafeGetTensorImpl();
      impl->set_sizes_and_strides(result.sizes(), result.strides());
      size_t bytes = at::detail::computeStorageNbytes(result.sizes(), result.strides(), target.itemsize(),
                                                      target.storage_offset());
      if (target.storage().nbytes() < bytes) target.storage().unsafeGetStorageImpl()->set_nbytes(bytes);
    }
    call.results[i] = call.arguments[inputs + i];
  }
}

/// `Misfit`: the result of a call in place has other sizes than its target. Most kernels refuse that, some
/// resize, and only the kernel itself says which.
enum class Answer : uint8_t { Given, LeftToOthers, Misfit };

Answer ask_rule(const Knowledge& knowledge, ShapeCall& call) {
  knowledge.rule(call);
  if (call.results.empty() && knowledge.returns) return Answer::LeftToOthers;
  if (knowledge.form == Knowledge::Form::InPlace && !write_in_place(call)) return Answer::Misfit;
  if (knowledge.form == Knowledge::Form::Out) write_out(call);
  call.arguments = std::move(call.results);
  return Answer::Given;
}

using Operands = c10::SmallVector<const at::Tensor*, 4>;

/// The tensors that decide the strides of a pointwise result.
Operands operands_of(const torch::jit::Stack& stack) {
  Operands operands;
  for (const c10::IValue& argument : stack)
    if (argument.isTensor() && argument.toTensor().defined() && argument.toTensor().dim() > 0)
      operands.push_back(&argument.toTensor());
  return operands;
}

/// Whether some operand is not dense and may be cast; equal dtypes are cast only where whole numbers become
/// floating.
bool may_copy_operands(const Operands& operands) {
  auto dense = [](const at::Tensor* t) { return t->is_non_overlapping_and_dense(); };
  if (operands.size() < 2 || std::all_of(operands.begin(), operands.end(), dense)) return false;
  auto same_floating = [&](const at::Tensor* t) {
    return t->scalar_type() == operands[0]->scalar_type() &&
           !c10::isIntegralType(t->scalar_type(), /*includeBool=*/true);
  };
  return !std::all_of(operands.begin(), operands.end(), same_floating);
}

/// Puts dense copies in the place of the operands that a kernel with this result would cast; false when there
/// are none.
bool copy_cast_operands(torch::jit::Stack& arguments, at::ScalarType result) {
  at::native::ResultTypeState state;
  for (const c10::IValue& argument : arguments)
    if (argument.isTensor() && argument.toTensor().defined())
      state = at::native::update_result_type_state(argument.toTensor(), state);
  at::ScalarType common = at::native::result_type(state);
  if (c10::isIntegralType(common, /*includeBool=*/true) && !c10::isIntegralType(result, /*includeBool=*/true))
    common = result;
  bool any = false;
  for (c10::IValue& argument : arguments) {
    if (!argument.isTensor() || !argument.toTensor().defined()) continue;
    const at::Tensor& tensor = argument.toTensor();
    if (tensor.scalar_type() == common || tensor.is_non_overlapping_and_dense()) continue;
    argument = rules::like(tensor);
    any = true;
  }
  return any;
}

/// Kernels that are looked up by device say in an error of the common kind that there is none for metas.
bool says_kernel_is_missing(const c10::Error& error) {
  return dynamic_cast<const c10::NotImplementedError*>(&error) ||
         std::string_view(error.what_without_backtrace())
             .starts_with("DispatchStub: unsupported device type");
}

bool mentions_meta(const c10::IValue& argument) {
  auto is_meta = [](const at::Tensor& tensor) { return tensor.defined() && tensor.is_meta(); };
  if (argument.isTensor()) return is_meta(argument.toTensor());
  if (argument.isDevice()) return argument.toDevice().is_meta();
  if (argument.isTensorList()) {
    auto list = argument.toTensorVector();
    return std::any_of(list.begin(), list.end(), is_meta);
  }
  if (argument.isOptionalTensorList()) {
    auto list = argument.toOptionalTensorVector();
    return std::any_of(list.begin(), list.end(),
                       [&](const std::optional<at::Tensor>& tensor) { return tensor && is_meta(*tensor); });
  }
  return false;
}

thread_local const c10::Device* asked_for = nullptr;

/// While it lives, operators that a kernel calls come to `infer_inner_shapes`: there our own rules come
/// first, and nothing that a host has registered for metas.
class InnerCalls {
 public:
  explicit InnerCalls(const c10::Device& device)
      : outer_(std::exchange(asked_for, &device)), keys_(with_ours()) {}
  ~InnerCalls() { asked_for = outer_; }

 private:
  static c10::impl::LocalDispatchKeySet with_ours() {
    auto keys = c10::impl::tls_local_dispatch_key_set();
    keys.included_ = keys.included_.add(c10::DispatchKey::Fake);
    keys.excluded_ = keys.excluded_.remove(c10::DispatchKey::Fake);
    return keys;
  }
  const c10::Device* outer_;
  c10::impl::ForceDispatchKeyGuard keys_;
};

void run_meta_kernel(const c10::OperatorHandle& op, const Knowledge& knowledge, c10::Device device,
                     torch::jit::Stack& stack) {
  std::optional<InnerCalls> inner;
  if (knowledge.meta_kernel->composite) inner.emplace(device);
  knowledge.meta_kernel->kernel.callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
}

bool ask_meta_kernel(const c10::OperatorHandle& op, Knowledge& knowledge, c10::Device device,
                     torch::jit::Stack& stack) {
  if (!knowledge.meta_kernel || knowledge.meta_kernel_missing.load(std::memory_order_relaxed)) return false;
  // TensorIterator on the CPU copies what it must cast before it looks at strides; a Meta kernel does not.
  bool may_copy = knowledge.pointwise && device.is_cpu() && may_copy_operands(operands_of(stack));
  // Asked again with these where the kernel turns out to be missing, or where operands are copied.
  bool certain =
      knowledge.steady && !may_copy && knowledge.meta_kernel_worked.load(std::memory_order_relaxed);
  torch::jit::Stack kept;
  if (!certain) kept = stack;
  if (knowledge.device_argument >= 0 &&
      (!knowledge.takes_tensors || !stack[knowledge.device_argument].isNone()))
    stack[knowledge.device_argument] = c10::Device(c10::kMeta);
  bool missing = false;
  try {
    run_meta_kernel(op, knowledge, device, stack);
  } catch (const c10::Error& error) {
    missing = says_kernel_is_missing(error);
    if (certain || !missing) throw;
  } catch (const std::exception&) {
    // A composite kernel came upon a Meta kernel that Python registered, and that one raised: the real kernel
    // knows better.
    missing = op.operator_name().getNamespace() == "aten";
    if (certain || !missing) throw;
  }
  if (missing) {
    knowledge.meta_kernel_missing = true;
    stack = std::move(kept);
    return false;
  }
  if (!certain) knowledge.meta_kernel_worked = true;
  if (may_copy && stack[0].isTensor() && copy_cast_operands(kept, stack[0].toTensor().scalar_type())) {
    stack = std::move(kept);
    run_meta_kernel(op, knowledge, device, stack);
  }
  return true;
}

}  // namespace

Devices infer_shapes(const c10::OperatorHandle& op, c10::Device device, torch::jit::Stack& stack) {
  static constexpr c10::DispatchKeySet ours({c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit});
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard below_tracing(ours);

  Knowledge& knowledge = knowledge_of(op);
  if (knowledge.device_argument >= 0 && stack[knowledge.device_argument].isDevice())
    device = stack[knowledge.device_argument].toDevice();
  Devices devices(knowledge.returns, device);
  if (knowledge.rule) {
    ShapeCall call(op, device, stack);
    Answer answer = ask_rule(knowledge, call);
    if (answer == Answer::Misfit) return run_on_stand_ins(op, device, stack);
    if (answer == Answer::Given) {
      for (size_t i = 0; call.cpu_results >> i; ++i)
        if (call.cpu_results >> i & 1) devices[i] = c10::kCPU;
      return devices;
    }
  }
  if (ask_meta_kernel(op, knowledge, device, stack)) return devices;
  // On stand-in data the effect would be had, and on nothing.
  if (facts(op).side_effect) {
    if (knowledge.returns)
      throw UnsupportedError(
          full_name(op) +
          " has side effects and results whose shapes are not known; register a Meta kernel for it");
    stack.clear();
    return devices;
  }
  return run_on_stand_ins(op, device, stack);
}

bool shapes_are_asked() { return asked_for != nullptr; }

bool infer_inner_shapes(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const auto first = stack.end() - int64_t(op.schema().arguments().size());
  // A kernel may compute with numbers of its own on the CPU.
  if (std::none_of(first, stack.end(), mentions_meta)) return false;
  // A kernel that reads data has no answer for metas; what stand-ins hold would be a guess.
  TORCH_CHECK_NOT_IMPLEMENTED(!facts(op).data_dependent, full_name(op),
                              " reads data, and a meta tensor has none");
  torch::jit::Stack results(std::make_move_iterator(first), std::make_move_iterator(stack.end()));
  stack.erase(first, stack.end());
  const c10::Device device = *asked_for;
  infer_shapes(op, device, results);
  std::move(results.begin(), results.end(), std::back_inserter(stack));
  return true;
}

}  // namespace tandem
