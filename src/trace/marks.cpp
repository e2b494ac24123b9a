// Marks of a program are calls that are recorded and watched as any other.
#include "ops/marks.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <tandem/memory.h>

#include "trace/tracer.h"
#include "trace/watcher.h"

namespace tandem {
namespace {

at::Tensor marked(const c10::OperatorHandle& op, at::Tensor x) {
  if (!x.defined() || (!Tracer::current() && !Watcher::current())) return x;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  torch::jit::Stack stack{x};
  op.callBoxed(stack);
  return x;
}

}  // namespace

at::Tensor must_save(at::Tensor x) { return marked(must_save_operator(), std::move(x)); }

at::Tensor prefer_recompute(at::Tensor x) { return marked(prefer_recompute_operator(), std::move(x)); }

}  // namespace tandem
