/// Finding the values of one graph again in another.
#pragma once

#include <tandem/partition.h>

#include <unordered_map>

namespace tandem {

/// Numbers the values of several graphs by how they are computed: two get the same number only if the same
/// operators make them of the same constants and inputs, whatever they are called. Nothing is taken for equal
/// by a hash alone. Two draws of random numbers differ: no pass leaves one out, so they can be counted.
/// `apart`: what the forward returned, and the caller may have written since, is another value than what the
/// forward or a backward computes again.
class ComputationKeys {
 public:
  explicit ComputationKeys(bool apart) : apart_(apart) {}

  /// A number for every value; 0 for one that nothing computes.
  std::vector<uint64_t> of(const Joint& joint);

 private:
  uint64_t key_of(std::string text) {
    return numbers_.emplace(std::move(text), numbers_.size() + 1).first->second;
  }
  std::string text_of(const Node& node, const std::vector<uint64_t>& keys) const;

  const bool apart_;
  std::unordered_map<std::string, uint64_t> numbers_;
};

}  // namespace tandem
