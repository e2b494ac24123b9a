/// Hooks on what autograd saves, which C++ sets on a thread as Python does.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <functional>
#include <memory>

namespace tandem {

/// While one lives, each tensor that autograd saves on its thread goes through hooks that `make` gives,
/// unless some that were set later are alive. It needs the engine of `save_aliases`.
class SavedHooks {
 public:
  using Make = std::function<std::unique_ptr<torch::autograd::SavedVariableHooks>()>;
  explicit SavedHooks(Make make);
  ~SavedHooks();
  SavedHooks(const SavedHooks&) = delete;
  SavedHooks& operator=(const SavedHooks&) = delete;
};

/// Hooks for the next tensor where those that were set last are C++'s; else none.
std::unique_ptr<torch::autograd::SavedVariableHooks> make_saved_hooks();

/// Whether any are set on this thread, and whether Python has set some.
bool saved_hooks_are_set();
bool python_saved_hooks_are_set();

}  // namespace tandem
