#include "fuzz/shaken_operators.h"

#include "fuzz/tolerance.h"
#include "ops/facts.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace tandem::fuzz {

namespace {

using Stack = torch::jit::Stack;

/// What gives elements as they are, chooses among them, or tells only how they compare. Nothing that is
/// missing here hides a wrong kind of code: its results may be a few last bits apart, no more.
const std::unordered_set<std::string>& exact_operators() {
  static const std::unordered_set<std::string> names = {"abs",
                                                        "amax",
                                                        "amin",
                                                        "aminmax",
                                                        "argmax",
                                                        "argmin",
                                                        "as_strided_scatter",
                                                        "bitwise_and",
                                                        "bitwise_not",
                                                        "bitwise_or",
                                                        "bitwise_xor",
                                                        "cat",
                                                        "ceil",
                                                        "clamp",
                                                        "clamp_max",
                                                        "clamp_min",
                                                        "clone",
                                                        "constant_pad_nd",
                                                        "contiguous",
                                                        "copy",
                                                        "copysign",
                                                        "cummax",
                                                        "cummin",
                                                        "diagonal_scatter",
                                                        "embedding",
                                                        "eq",
                                                        "fill",
                                                        "flip",
                                                        "floor",
                                                        "fmax",
                                                        "fmin",
                                                        "frac",
                                                        "gather",
                                                        "ge",
                                                        "gt",
                                                        "index",
                                                        "index_copy",
                                                        "index_fill",
                                                        "index_select",
                                                        "isfinite",
                                                        "isinf",
                                                        "isnan",
                                                        "isneginf",
                                                        "isposinf",
                                                        "kthvalue",
                                                        "le",
                                                        "lift_fresh",
                                                        "logical_and",
                                                        "logical_not",
                                                        "logical_or",
                                                        "logical_xor",
                                                        "lt",
                                                        "masked_fill",
                                                        "masked_scatter",
                                                        "max",
                                                        "maximum",
                                                        "median",
                                                        "min",
                                                        "minimum",
                                                        "nan_to_num",
                                                        "ne",
                                                        "neg",
                                                        "nonzero",
                                                        "relu",
                                                        "repeat",
                                                        "roll",
                                                        "round",
                                                        "scatter",
                                                        "select_backward",
                                                        "select_scatter",
                                                        "sgn",
                                                        "sign",
                                                        "signbit",
                                                        "slice_backward",
                                                        "slice_scatter",
                                                        "sort",
                                                        "stack",
                                                        "take",
                                                        "threshold",
                                                        "threshold_backward",
                                                        "_to_copy",
                                                        "topk",
                                                        "tril",
                                                        "triu",
                                                        "trunc",
                                                        "unfold_backward",
                                                        "where",
                                                        "zero"};
  return names;
}

bool finds_rounding(const c10::OperatorHandle& op) {
  const std::string& full = op.schema().name();
  const bool is_composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
                            !op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
  if (!full.starts_with("aten::") || is_composite) return false;
  std::string name = full.substr(6);
  if (name.ends_with("_") && !name.ends_with("__")) name.pop_back();
  if (name.starts_with("_foreach_")) name = name.substr(9);
  const OpFacts& known = facts(op);
  return !known.view && !known.random && !known.unset && !known.data_dependent && !known.side_effect &&
         !known.replaces_memory && known.kind != tandem::Kind::Factory && !exact_operators().contains(name);
}

bool rounds(const c10::OperatorHandle& op) {
  static thread_local std::unordered_map<c10::OperatorName, bool> known;
  auto [found, is_new] = known.try_emplace(op.operator_name(), false);
  if (is_new) found->second = finds_rounding(op);
  return found->second;
}

bool can_be_shaken(const at::Tensor& t) {
  return t.defined() && t.device().is_cpu() && t.layout() == at::kStrided && t.has_storage() &&
         tolerance_of(t.scalar_type()) != nullptr && !t._is_zerotensor() && !t.is_neg() && !t.is_conj();
}

/// The noise that all operators on a thread share, and whether they compute floats in double, which shows the
/// error of their own kernels.
thread_local at::Generator noise;
thread_local bool in_doubles = false;

at::Tensor shaken(const at::Tensor& t) {
  const at::Tensor plain = t.detach();
  const auto wide =
      at::TensorOptions(plain.scalar_type() == at::kDouble || plain.is_complex() ? at::kDouble : at::kFloat);
  const at::Tensor steps = at::empty(plain.sizes(), wide).random_(1, 3, noise);
  const at::Tensor up = at::empty(plain.sizes(), wide).random_(0, 2, noise);
  const double ulp = tolerance_of(plain.scalar_type())->ulp;
  at::Tensor result = at::empty_like(plain);
  return result.copy_(plain * (1 + steps * (2 * up - 1) * ulp));
}

void for_tensors(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  if (value.isTensor()) visit(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& t : value.toTensorVector()) visit(t);
}

at::Tensor widened_or_shaken(const at::Tensor& t) {
  return in_doubles && t.scalar_type() == at::kFloat ? t.detach().to(at::kDouble) : shaken(t);
}

/// The same arguments with other last bits, in memory of their own.
c10::IValue copied(const c10::IValue& value) {
  auto copy = [](const at::Tensor& t) {
    return can_be_shaken(t) ? widened_or_shaken(t) : t.defined() && t.has_storage() ? t.detach().clone() : t;
  };
  if (value.isTensor()) return copy(value.toTensor());
  if (!value.isTensorList()) return value;
  std::vector<at::Tensor> copies;
  for (const at::Tensor& t : value.toTensorVector()) copies.push_back(copy(t));
  return copies;
}

/// A call that is under way: what it writes, and what will be done once more with other last bits.
struct ShakenCall final : at::ObserverContext {
  explicit ShakenCall(c10::OperatorHandle op_) : op(std::move(op_)) {}
  c10::OperatorHandle op;
  Stack stack;
  std::vector<at::Tensor> written, written_copies;
};

at::Tensor log_softmax_in_steps(const Stack& arguments) {
  const at::Tensor& x = arguments[0].toTensor();
  const int64_t dim = arguments[1].toInt();
  const at::Tensor shifted = shaken(x - x.amax(dim, true));
  const at::Tensor total = shaken(shaken(shifted.exp()).sum(dim, true));
  return shifted - shaken(total.log());
}

at::Tensor log_softmax_backward_in_steps(const Stack& arguments) {
  const at::Tensor &gradient = arguments[0].toTensor(), &y = arguments[1].toTensor();
  const at::Tensor total = shaken(gradient.sum(arguments[2].toInt(), true));
  return gradient - shaken(shaken(y.exp()) * total);
}

/// beta * (x + kappa * x^3), of which the approximate gelu takes the tanh, which is close to -1 soon.
constexpr double gelu_beta = M_SQRT2 * M_2_SQRTPI / 2, gelu_kappa = 0.044715;
at::Tensor gelu_tanh(const at::Tensor& x) {
  return shaken(shaken(gelu_beta * (x + gelu_kappa * x.pow(3))).tanh());
}

at::Tensor gelu_in_steps(const Stack& arguments) {
  const at::Tensor& x = arguments[0].toTensor();
  const auto form = arguments[1].toStringView();
  return form == "tanh" ? x / 2 * (1 + gelu_tanh(x)) : at::gelu(x, form);
}

at::Tensor gelu_backward_in_steps(const Stack& arguments) {
  const at::Tensor &gradient = arguments[0].toTensor(), &x = arguments[1].toTensor();
  const auto form = arguments[2].toStringView();
  if (form != "tanh") return at::gelu_backward(gradient, x, form);
  const at::Tensor bent = gelu_tanh(x), inner = gelu_beta * (1 + 3 * gelu_kappa * x.square());
  return gradient * ((1 + bent) / 2 + x / 2 * (1 - shaken(bent.square())) * inner);
}

/// Kernels that compute numbers close to 1, and the small difference of these and others: many of its bits
/// hang on the last ones of what is never seen outside, and on those of no argument. So they are done step by
/// step, as the kernels do it, and each step is rounded otherwise.
void call_otherwise(const c10::OperatorHandle& op, Stack& stack) {
  static const std::unordered_map<std::string, at::Tensor (*)(const Stack&)> steps = {
      {"aten::_log_softmax", log_softmax_in_steps},
      {"aten::_log_softmax_backward_data", log_softmax_backward_in_steps},
      {"aten::gelu", gelu_in_steps},
      {"aten::gelu_backward", gelu_backward_in_steps}};
  const auto known = op.schema().overload_name().empty() ? steps.find(op.schema().name()) : steps.end();
  if (known == steps.end() || at::isReducedFloatingType(stack[0].toTensor().scalar_type()))
    op.callBoxed(&stack);
  else
    stack = {known->second(stack)};
}

/// Nothing of ours is seen by autograd, or shaken in turn.
struct Apart {
  at::DisableRecordFunctionGuard unobserved;
  at::NoGradGuard no_grad;
};

/// In memory alone: autograd counts no write.
void put(const at::Tensor& to, const at::Tensor& from) {
  if (!can_be_shaken(to) || !from.defined() || to.sizes() != from.sizes() ||
      tolerance_of(from.scalar_type()) == nullptr || from.is_complex() != to.is_complex())
    return;
  to.variable_data().copy_(shaken(from.to(to.scalar_type())));
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& fn) {
  const auto name = fn.operator_name();
  if (!name) return nullptr;
  const auto op = c10::Dispatcher::singleton().findOp(*name);
  if (!op || !op->hasSchema() || !rounds(*op) || fn.inputs().size() != op->schema().arguments().size())
    return nullptr;
  const Apart guard;
  auto call = std::make_unique<ShakenCall>(*op);
  for (const c10::IValue& argument : fn.inputs()) call->stack.push_back(copied(argument));
  for (int place : facts(*op).written) {
    auto keep = [](std::vector<at::Tensor>& in) { return [&in](const at::Tensor& t) { in.push_back(t); }; };
    for_tensors(fn.inputs()[size_t(place)], keep(call->written));
    for_tensors(call->stack[size_t(place)], keep(call->written_copies));
  }
  return call;
}

void end(const at::RecordFunction& fn, at::ObserverContext* context) {
  auto* call = static_cast<ShakenCall*>(context);
  if (call == nullptr) return;
  const Apart guard;
  try {
    call_otherwise(call->op, call->stack);
    for (size_t k = 0; k < call->written.size(); ++k) put(call->written[k], call->written_copies[k]);
    std::vector<at::Tensor> results, others;
    for (const c10::IValue& value : fn.outputs())
      for_tensors(value, [&](const at::Tensor& t) { results.push_back(t); });
    for (const c10::IValue& value : call->stack)
      for_tensors(value, [&](const at::Tensor& t) { others.push_back(t); });
    for (size_t k = 0; k < results.size() && results.size() == others.size(); ++k) put(results[k], others[k]);
  } catch (const c10::Error&) {
    // It refuses other numbers, as the original may have refused these.
  }
}

}  // namespace

ShakenOperators::ShakenOperators(uint64_t seed) {
  noise = at::detail::createCPUGenerator(seed);
  in_doubles = seed % 2 == 1;
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin, end)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

ShakenOperators::~ShakenOperators() { at::removeCallback(callback_); }

}  // namespace tandem::fuzz
