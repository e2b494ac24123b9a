/// The memory of a forward, storage by storage: what a partitioner keeps or gives up.
#pragma once

#include "partition/split.h"

namespace tandem {

/// One storage that the forward makes, or a primal of which nodes that run again would read a copy.
struct Block {
  int64_t bytes = 0;
  std::vector<int32_t> makers;  ///< nodes that make values in it; none of a primal
  std::vector<int32_t> reads;   ///< other blocks that these nodes read when they run again
  bool is_repeatable = false;   ///< the backward can make all of it again
  bool may_save = false;        ///< it can be kept, out of the caller's reach
  bool is_kept_anyway = false;  ///< the context asks for it
  bool is_preferred = false;    ///< the program wants it computed again
  bool is_needed = false;       ///< the backward's own nodes read it, and nobody else keeps it
};

class Blocks {
 public:
  Blocks(const Joint& joint, const PartitionContext& context, const Recomputation& can);

  size_t size() const { return blocks_.size(); }
  const Block& operator[](size_t block) const { return blocks_[block]; }
  /// The values that lie in blocks that are kept, by their ids.
  std::vector<bool> values_in(const std::vector<bool>& kept) const;
  /// For people: the value that begins it and the node that makes it.
  std::string describe(size_t block) const;

 private:
  void add_values(const Joint& joint, const PartitionContext& context);
  void prefer(const std::vector<Value>& marked);
  void add_reads(const Joint& joint);

  const Graph& graph_;
  const Recomputation& can_;
  std::vector<Block> blocks_;
  std::vector<int32_t> block_of_;  ///< of each value, or -1
  std::vector<Value> first_;       ///< the value that begins each block
};

}  // namespace tandem
