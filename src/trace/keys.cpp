// The only place that knows which dispatch keys we listen on.
//
// Fake lies below autograd: there every call arrives after autograd has had its say. DeferredInit lies above
// it: there real tensors are swapped for their fakes before autograd sees them.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "ops/facts.h"
#include "shapes/shapes.h"
#include "trace/branching.h"
#include "trace/failure.h"
#include "trace/one_hot.h"
#include "trace/other_threads.h"
#include "trace/refuse.h"
#include "trace/tracer.h"
#include "trace/watcher.h"

namespace tandem {
namespace {

/// Interpreters between us and our caller may replace our exceptions by theirs; the caller finds ours again.
template <class Step>
void remember_failure(Step&& step) {
  try {
    step();
  } catch (const Error&) {
    last_failure() = std::current_exception();
    throw;
  }
}

void record_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (shapes_are_asked()) {
    if (!infer_inner_shapes(op, *stack))
      op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake),
                         stack);
    return;
  }
  if (is_mark(op))
    return op.redispatchBoxed(
        keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake), stack);
  Tracer* tracer = Tracer::current();
  if (!tracer) {
    if (Watcher* watcher = Watcher::current()) return watcher->see(op, keys, *stack);
    if (run_on_zeros(op, *stack)) return;
    throw Error("a tensor from inside a traced function was used after the trace had ended, in " +
                op.schema().name() + "; it has no data: return it from the function instead of keeping it");
  }
  remember_failure([&] { tracer->record_call(op, *stack); });
}

/// What an operator gives back as it got it (`to`, where there is nothing to do) is still the tensor that the
/// program knows: it may ask for gradients of it. Once it was written, only its fake knows its history.
void return_the_same(const c10::OperatorHandle& op, const std::vector<Lifted>& lifted,
                     torch::jit::Stack& stack) {
  if (lifted.empty() || op.schema().returns().size() != 1 || !stack.back().isTensor() ||
      op.schema().is_mutable())
    return;
  for (const auto& [real, fake] : lifted)
    if (fake.is_same(stack.back().toTensor()) && (fake.is_inference() || fake._version() == real._version()))
      stack.back() = real;
}

void lift_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  std::vector<Lifted> lifted;
  if (Tracer* tracer = Tracer::current())
    remember_failure([&] { lifted = tracer->lift_arguments(op.schema().arguments().size(), *stack); });
  OutermostCall here(op);
  try {
    op.redispatchBoxed(
        keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::DeferredInit), stack);
    return_the_same(op, lifted, *stack);
  } catch (const c10::Error& error) {
    if (!asks_for_data(error.what_without_backtrace())) throw;
    remember_failure([&] { refuse_data_access(op); });
  }
}

/// libtorch refuses to detach views in place, and the fake of an argument is no view. What autograd saved is
/// the tensor itself, which has no history when a second derivative asks, and ours has the one that it had.
void lift_detach(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (Tracer* tracer = Tracer::current()) {
    remember_failure([&] {
      tracer->lift_arguments(1, *stack);
      tracer->note_detaching(stack->back().toTensor());
      for (const TracedInput& input : tracer->inputs())
        if (input.real.is_view() && input.visible.is_same(stack->back().toTensor()))
          throw RunEagerly("the function detaches an input in place that is a view");
      if (const FakeImpl* fake = as_fake(stack->back().toTensor());
          fake && fake->is_saved && tracer->runs_program() && stack->back().toTensor().requires_grad())
        throw RunEagerly("the function detaches a tensor in place that autograd saved" + called_at());
    });
  }
  lift_fallback(op, keys, stack);
}

void lift_branching(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  lift_fallback(op, keys, stack);
  Tracer* tracer = Tracer::current();
  if (tracer && branch(torch::jit::peek(stack, 0, op.schema().returns().size()).toTensor()))
    tracer->note_branches();
}

void lift_one_hot(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  Tracer* tracer = Tracer::current();
  if (tracer) remember_failure([&] { tracer->lift_arguments(2, *stack); });
  if (tracer || Watcher::current()) {
    if (auto spread = spread_classes(torch::jit::peek(stack, 0, 2).toTensor(), stack->back().toInt())) {
      torch::jit::drop(stack, 2);
      return stack->push_back(*spread);
    }
  }
  lift_fallback(op, keys, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, DeferredInit, library) {
  library.impl("detach_", torch::CppFunction::makeFromBoxedFunction<&lift_detach>());
  library.impl("one_hot", torch::CppFunction::makeFromBoxedFunction<&lift_one_hot>());
  for (const char* name : branching_operators())
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&lift_branching>());
}
TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&record_fallback>());
}
TORCH_LIBRARY_IMPL(_, DeferredInit, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&lift_fallback>());
}

}  // namespace tandem
