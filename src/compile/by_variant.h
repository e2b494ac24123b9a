/// What was compiled for each combination of tangents and wanted gradients.
#pragma once

#include "aot/variant.h"

#include <memory>
#include <mutex>

namespace tandem {

/// Grows while the lock of the compile driver is held, and is searched without it: what is there already is found while another one is being compiled or saved.
/// A T has a member `variant`, a field or a function.
template <class T>
class ByVariant {
 public:
  /// The one for `asked`, or null.
  T* find(const BackwardVariant& asked) const {
    std::lock_guard lock(mutex_);
    for (const auto& made : made_)
      if (variant_of(*made) == asked) return made.get();
    return nullptr;
  }
  T& add(std::unique_ptr<T> made) {
    std::lock_guard lock(mutex_);
    return *made_.emplace_back(std::move(made));
  }
  /// For whoever holds the lock of the compile driver.
  const std::vector<std::unique_ptr<T>>& all() const { return made_; }

 private:
  static const BackwardVariant& variant_of(const T& made) {
    if constexpr (requires { made.variant(); }) return made.variant();
    else return made.variant;
  }

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<T>> made_;
};

}  // namespace tandem
