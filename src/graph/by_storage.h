/// Tables of a graph's storages.
#pragma once

#include <tandem/graph.h>

#include <unordered_map>
#include <utility>

namespace tandem {

/// Something for each storage, at first `initial`; -1, which stands for an unknown one, is a storage like any
/// other.
template <class T>
class ByStorage {
 public:
  explicit ByStorage(const Graph& graph, T initial = {})
      : initial_(initial), low_(graph.value_count() + 1, initial) {}

  T& operator[](int32_t storage) {
    const size_t place = size_t(storage + 1);
    return place < low_.size() ? low_[place] : high_.try_emplace(storage, initial_).first->second;
  }
  T at(int32_t storage) const {
    const size_t place = size_t(storage + 1);
    if (place < low_.size()) return low_[place];
    const auto found = high_.find(storage);
    return found == high_.end() ? initial_ : found->second;
  }

 private:
  T initial_;
  std::vector<T> low_;  ///< few graphs have higher numbers than they have values
  std::unordered_map<int32_t, T> high_;
};

class StorageSet {
 public:
  explicit StorageSet(const Graph& graph) : has_(graph) {}

  /// Whether it was not there.
  bool insert(int32_t storage) { return !std::exchange(has_[storage], char(true)); }
  bool contains(int32_t storage) const { return has_.at(storage); }

 private:
  ByStorage<char> has_;
};

}  // namespace tandem
