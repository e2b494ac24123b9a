#include "trace/other_threads.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>

#include <map>
#include <mutex>

#include "trace/fake.h"

namespace tandem {
namespace {

std::mutex mutex;

/// Tracers at work, and whether another thread came upon a fake of theirs.
std::map<uint64_t, bool>& at_work() {
  static auto& tracers = *new std::map<uint64_t, bool>;  // never destroyed: threads may outlive main
  return tracers;
}

bool note(uint64_t tracer) {
  std::lock_guard lock(mutex);
  auto found = at_work().find(tracer);
  if (found == at_work().end()) return false;
  return found->second = true;
}

/// `map(tensor)` in the place of each tensor.
template <class Map>
void map_tensors(c10::IValue& value, const Map& map) {
  if (value.isTensor()) {
    value = map(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(map(tensor));
    value = std::move(list);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(map(*tensor)) : std::nullopt);
    value = std::move(list);
  }
}

}  // namespace

OtherThreads::OtherThreads(uint64_t tracer) : tracer_(tracer) {
  std::lock_guard lock(mutex);
  at_work().emplace(tracer, false);
}

OtherThreads::~OtherThreads() {
  std::lock_guard lock(mutex);
  at_work().erase(tracer_);
}

bool OtherThreads::were_met() const {
  std::lock_guard lock(mutex);
  return at_work().at(tracer_);
}

bool run_on_zeros(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  bool all_noted = true;
  auto zeros = [&](const at::Tensor& tensor) {
    const FakeImpl* fake = as_fake(tensor);
    if (!fake) return tensor;
    all_noted = all_noted && note(fake->tracer);
    return at::empty_strided(fake->sizes(), fake->strides(),
                             at::TensorOptions(fake->dtype()).device(fake->device()))
        .zero_();
  };
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i)
    map_tensors(stack[i], zeros);
  if (all_noted) op.callBoxed(&stack);
  return all_noted;
}

}  // namespace tandem
