#include "trace/engine_sums.h"

#include <torch/csrc/autograd/function.h>

#include <c10/core/GradMode.h>

#include "trace/fake.h"

namespace tandem {
namespace {

/// How many nodes compute, one within another.
thread_local int formulas = 0;

}  // namespace

NotedFormulas::NotedFormulas() : outer_(std::exchange(formulas, 0)) {
  handle_ =
      at::addThreadLocalCallback(at::RecordFunctionCallback(
                                     [](const at::RecordFunction&) {
                                       ++formulas;
                                       return std::unique_ptr<at::ObserverContext>();
                                     },
                                     [](const at::RecordFunction&, at::ObserverContext*) { --formulas; })
                                     .scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

NotedFormulas::~NotedFormulas() {
  at::removeCallback(handle_);
  formulas = outer_;
}

bool engine_adds_into(const at::Tensor& first) {
  if (c10::GradMode::is_enabled() || formulas > 0 || !torch::autograd::get_current_node()) return false;
  const FakeImpl* fake = as_fake(first);
  // The tensor is the engine's and the call's, its memory the tensor's and the trace's.
  constexpr size_t owners = 2;
  return fake && !fake->zero && first.use_count() == owners && fake->meta.storage().use_count() == owners &&
         first.is_non_overlapping_and_dense();
}

}  // namespace tandem
