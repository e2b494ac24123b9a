#include "ops/marks.h"

#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace tandem {
namespace {

void mark(const at::Tensor&) {}

}  // namespace

TORCH_LIBRARY_FRAGMENT(tandem, library) {
  for (const char* name : {"must_save", "prefer_recompute"}) {
    library.def((std::string(name) + "(Tensor x) -> ()").c_str());
    library.impl(name, c10::DispatchKey::CompositeExplicitAutograd, mark);
    library.impl(name, torch::dispatch(c10::DispatchKey::Autograd, torch::CppFunction::makeFallthrough()));
  }
}

const c10::OperatorHandle& must_save_operator() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("tandem::must_save", "");
  return op;
}

const c10::OperatorHandle& prefer_recompute_operator() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("tandem::prefer_recompute", "");
  return op;
}

}  // namespace tandem
