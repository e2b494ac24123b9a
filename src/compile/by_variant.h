/// What was compiled for each combination of tangents and wanted gradients.
#pragma once

#include "aot/variant.h"

#include <algorithm>
#include <memory>
#include <mutex>

namespace tandem {

/// Grows while the lock of the compile driver is held, and is searched without it: what is there already is
/// found while another one is being compiled or saved. Holds at most so many; whoever runs one that goes
/// keeps it. A T has a member `variant`, a field or a function.
template <class T>
class ByVariant {
 public:
  explicit ByVariant(size_t most) : most_(most) {}

  /// The one for `asked`, or null.
  std::shared_ptr<T> find(const BackwardVariant& asked) {
    std::lock_guard lock(mutex_);
    const auto is_asked = [&](const std::shared_ptr<T>& made) { return variant_of(*made) == asked; };
    const auto at = std::find_if(used_.rbegin(), used_.rend(), is_asked);
    if (at == used_.rend()) return nullptr;
    std::rotate(at.base() - 1, at.base(), used_.end());
    return used_.back();
  }
  /// Whether the least recently used one had to go for it.
  bool add(std::shared_ptr<T> made) {
    std::lock_guard lock(mutex_);
    ++added_;
    used_.push_back(std::move(made));
    if (used_.size() <= most_) return false;
    used_.erase(used_.begin());
    return true;
  }
  /// Those that are there, the most recently used last.
  std::vector<std::shared_ptr<T>> all() const {
    std::lock_guard lock(mutex_);
    return used_;
  }
  /// How many were ever added; for whoever holds the lock of the compile driver.
  size_t added() const { return added_; }

 private:
  static const BackwardVariant& variant_of(const T& made) {
    if constexpr (requires { made.variant(); })
      return made.variant();
    else
      return made.variant;
  }

  const size_t most_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<T>> used_;  ///< the least recently used first
  size_t added_ = 0;
};

}  // namespace tandem
