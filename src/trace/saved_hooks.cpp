#include "trace/saved_hooks.h"

#include <ATen/SavedTensorHooks.h>

#include <vector>

namespace tandem {
namespace {

struct Level {
  SavedHooks::Make make;
  size_t of_python;  ///< how many Python had set before
};

thread_local std::vector<Level> levels;

size_t count_of_python() { return at::SavedTensorDefaultHooks::get_tls_state().stack.size(); }

}  // namespace

SavedHooks::SavedHooks(Make make) { levels.push_back({std::move(make), count_of_python()}); }

SavedHooks::~SavedHooks() { levels.pop_back(); }

std::unique_ptr<torch::autograd::SavedVariableHooks> make_saved_hooks() {
  if (levels.empty() || count_of_python() > levels.back().of_python) return nullptr;
  return levels.back().make();
}

bool python_saved_hooks_are_set() { return count_of_python() > 0; }

bool saved_hooks_are_set() { return !levels.empty() || python_saved_hooks_are_set(); }

}  // namespace tandem
