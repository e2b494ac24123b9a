/// When a signature that nobody compiled yet is worth it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace tandem {

/// Compiling costs several calls, so it pays for signatures that come again. While those that were compiled
/// do, a new one is compiled at its first call; where they do not, the next has to come more and more often
/// before it is.
class Novelty {
 public:
  /// A signature has paid for its compile when it was called this often.
  static constexpr size_t pays_after = 8;

  /// Counts a call with a signature that is not compiled; `unpaid` says how many compiled ones have not paid
  /// yet.
  bool is_worth_compiling(uint64_t signature, size_t unpaid) {
    if (unpaid < at_once) return true;
    if (sights_.size() >= most_sights) sights_.clear();
    const size_t sights = ++sights_[signature], wanted = size_t(1)
                                                         << std::min(unpaid - at_once + 1, most_doublings);
    if (sights < wanted) return false;
    sights_.erase(signature);
    return true;
  }

 private:
  static constexpr size_t at_once = 3, most_doublings = 8, most_sights = 4096;
  std::unordered_map<uint64_t, size_t> sights_;
};

}  // namespace tandem
