/// The signatures of one function, compiled or given up.
#pragma once

#include <atomic>
#include <shared_mutex>

#include "runtime/entry.h"

namespace tandem {

/// What fits a call, with what the call reaches held for as long as it lasts.
struct FoundEntry {
  std::shared_ptr<Entry> entry;
  Tensors reached;
};

/// Most recently used first. Any number of threads may call it at once.
class Entries {
 public:
  explicit Entries(size_t most) : most_(most) {}

  /// The entry whose signature such a call has, if there is one.
  FoundEntry find(const Tensors& arguments, const Watched& watched, const Modes& modes);
  /// One that such a call would have but for which leaves have gradients, where `does_the_same(entry)`; asked
  /// once for each way in which they have.
  template <class Same>
  FoundEntry find_with_other_gradients(const Tensors& arguments, const Watched& watched, const Modes& modes,
                                       const Same& does_the_same);
  /// The one that was used last; null where there is none.
  std::shared_ptr<Entry> last() const;
  /// What the entries captured that gathers gradients.
  Tensors leaves() const;
  /// How many were compiled and hardly called since. Those that died so count as long as no other one has
  /// paid since.
  size_t count_unpaid() const;
  /// Adds one, drops `replaced` and those whose captures are gone, and the least recently used of too many;
  /// says whether there were.
  bool keep(std::shared_ptr<Entry> entry, const std::shared_ptr<Entry>& replaced);
  void clear();

  static constexpr size_t most_bytes = size_t(512) << 20;

 private:
  std::vector<std::shared_ptr<Entry>> all() const;
  void move_to_front(const std::shared_ptr<Entry>& entry);
  void accept_gradients(Entry& entry, const Tensors& reached, const Watched& watched);
  bool are_too_many() const;

  const size_t most_;
  mutable std::shared_mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;
  std::atomic<bool> promote_ = false;
  size_t lost_ = 0;  ///< that died before they paid
};

template <class Same>
FoundEntry Entries::find_with_other_gradients(const Tensors& arguments, const Watched& watched,
                                              const Modes& modes, const Same& does_the_same) {
  for (const auto& entry : all()) {
    auto reached = entry->reach(arguments);
    if (!reached || !entry->reason_to_run_as_it_is().empty() ||
        !entry->signature.matches_but_for_gradients(arguments, *reached, watched, modes))
      continue;
    if (!does_the_same(*entry)) return {};
    accept_gradients(*entry, *reached, watched);
    return {entry, std::move(*reached)};
  }
  return {};
}

}  // namespace tandem
