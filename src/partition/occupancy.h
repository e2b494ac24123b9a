/// The memory of a graph while its nodes run, in the order of the record or another one.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// Inputs whose memory is free when nothing reads it any more, with its bytes.
using GivenBytes = std::vector<std::pair<Value, int64_t>>;

/// Which memory each node makes and reads: one stretch for each storage.
class Footprint {
 public:
  Footprint(const Graph& graph, const GivenBytes& given);

  size_t stretch(Value v) const { return size_t(stretches_[size_t(v.id)]); }
  /// Of stretches.
  size_t count() const { return bytes_.size(); }
  /// Each once.
  c10::ArrayRef<uint32_t> touched(size_t node) const {
    return {touched_.data() + first_touched_[node], first_touched_[node + 1] - first_touched_[node]};
  }

  int64_t bytes(size_t stretch) const { return bytes_[stretch]; }
  int64_t workspace(size_t node) const { return workspace_[node]; }
  /// The stretch of the operand in whose place a sum may lie, or none.
  int32_t taken(size_t node) const { return taken_[node]; }
  /// Of each stretch: whether it is there before the first node, and how many nodes and outputs touch it.
  const std::vector<char>& are_there() const { return is_there_; }
  const std::vector<int32_t>& uses() const { return uses_; }

  static constexpr int32_t none = -1;

 private:
  void find_touched(const Graph& graph);
  void find_inputs(const Graph& graph, const GivenBytes& given);
  void find_takers(const Graph& graph);

  std::vector<int32_t> stretches_;  ///< of each value that is there
  // Of each stretch:
  std::vector<int64_t> bytes_;  ///< none of what somebody else holds
  std::vector<char> is_there_;
  std::vector<int32_t> uses_;
  // Of each node:
  std::vector<uint32_t> touched_;  ///< one node's behind the other's
  std::vector<size_t> first_touched_;
  std::vector<int64_t> workspace_;
  std::vector<int32_t> taken_;
};

/// What is alive while nodes run: each stretch from the node that makes it to the last that touches it.
class Occupancy {
 public:
  /// `live`: bytes that are alive before.
  Occupancy(const Footprint& of, int64_t live);

  struct Change {
    int64_t most;   ///< above what is alive now, while the node runs
    int64_t grows;  ///< behind it
  };
  Change change(size_t node) const;
  void run(size_t node);

  int64_t live() const { return live_; }
  /// The most bytes that were alive at once.
  int64_t highest() const { return highest_; }

 private:
  const Footprint& of_;
  std::vector<char> is_there_;
  std::vector<int32_t> uses_left_;
  int64_t live_, highest_;
};

}  // namespace tandem
