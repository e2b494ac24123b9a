#include "ops/generator_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "ops/facts.h"

namespace tandem {
namespace {

// Kernels fetch the live generator of their device themselves wherever they are given none, and whoever set
// its state for them would race with every other thread that draws. So they are given one: behind this key,
// which only a living DrawsFromState sets, every call that could take a generator and has none gets ours,
// also those that kernels make.
constexpr auto drawing_key = c10::DispatchKey::TESTING_ONLY_GenericMode;

thread_local const at::Generator* drawn_from = nullptr;

const std::string& dropout_name() {
  static const std::string name = "aten::native_dropout";
  return name;
}

std::optional<size_t> generator_argument(const c10::FunctionSchema& schema) {
  for (size_t i = 0; i < schema.arguments().size(); ++i)
    if (schema.arguments()[i].name() == "generator") return i;
  return std::nullopt;
}

/// On the GPU this one takes no generator, and the older one, which does, is the same kernel.
bool drop_out_from(const at::Generator& generator, const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (op.schema().name() != dropout_name() || !op.schema().overload_name().empty()) return false;
  const c10::IValue train = stack.back();
  const double p = stack[stack.size() - 2].toDouble();
  const at::Tensor input = stack[stack.size() - 3].toTensor();
  const bool draws =
      !input.device().is_cpu() && input.numel() > 0 && p > 0 && p < 1 && (train.isNone() || train.toBool());
  if (!draws) return false;
  auto [output, mask] = at::_fused_dropout(input, 1 - p, generator);
  torch::jit::drop(stack, 3);
  stack.emplace_back(std::move(output));
  stack.emplace_back(mask.to(at::kBool));
  return true;
}

void give_generator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (drawn_from) {
    const auto& schema = op.schema();
    if (drop_out_from(*drawn_from, op, *stack)) return;
    if (const auto place = generator_argument(schema)) {
      c10::IValue& given = (*stack)[stack->size() - schema.arguments().size() + *place];
      if (given.isNone() || (given.isGenerator() && !given.toGenerator().defined())) given = *drawn_from;
    }
  }
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, drawing_key), stack);
}

at::Tensor state_of(at::Generator generator) {
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

at::Tensor generator_state(c10::Device device, std::optional<at::Generator> given) {
  return state_of(given && given->defined() ? *given : at::globalContext().defaultGenerator(device));
}

at::Generator generator_in(c10::Device device, const at::Tensor& state) {
  at::Generator live = at::globalContext().defaultGenerator(device);
  at::Generator own;
  {
    std::lock_guard lock(live.mutex());
    own = live.clone();
  }
  own.set_state(state);
  return own;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(tandem, library) {
  library.def("generator_state(Device device, *, Generator? generator=None) -> Tensor", &generator_state);
}
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&give_generator>());
}

const c10::OperatorHandle& generator_state_operator() {
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow("tandem::generator_state", "");
  return op;
}

bool reads_generator(const c10::OperatorHandle& op) { return op == generator_state_operator(); }

int64_t generator_state_bytes(c10::Device device) {
  return state_of(at::globalContext().defaultGenerator(device)).numel();
}

/// On the CPU every kernel of libtorch's comes to its numbers by calls that take a generator; elsewhere some
/// do not.
bool can_draw_from_state(const c10::OperatorHandle& op, c10::Device device) {
  if (!facts(op).random || op.operator_name().name.rfind("aten::", 0) != 0) return false;
  return device.is_cpu() || generator_argument(op.schema()) || op.schema().name() == dropout_name();
}

DrawsFromState::DrawsFromState(c10::Device device, const at::Tensor& state)
    : generator_(generator_in(device, state)), outer_(drawn_from) {
  drawn_from = &generator_;
  c10::impl::tls_set_dispatch_key_included(drawing_key, true);
}

DrawsFromState::~DrawsFromState() {
  drawn_from = outer_;
  c10::impl::tls_set_dispatch_key_included(drawing_key, outer_ != nullptr);
}

at::Tensor DrawsFromState::state() const { return state_of(generator_); }

}  // namespace tandem
