#include "partition/blocks.h"

#include <algorithm>

#include "graph/by_storage.h"
#include "ops/facts.h"

namespace tandem {

Blocks::Blocks(const Joint& joint, const PartitionContext& context, const Recomputation& can)
    : graph_(joint.graph), can_(can), block_of_(graph_.value_count(), -1) {
  add_values(joint, context);
  add_reads(joint);
}

void Blocks::add_values(const Joint& joint, const PartitionContext& context) {
  constexpr int32_t none = -1;
  ByStorage<int32_t> by_storage(graph_, none);
  auto add = [&](Value v) -> Block& {
    const int32_t storage = graph_.meta(v).storage;
    int32_t alone = none, &block = storage < 0 ? alone : by_storage[storage];
    if (block == none) {
      block = int32_t(blocks_.size());
      blocks_.push_back({.is_repeatable = true, .may_save = true});
      first_.push_back(v);
    }
    block_of_[size_t(v.id)] = block;
    Block& found = blocks_[size_t(block)];
    found.bytes = std::max(found.bytes, graph_.meta(v).storage_bytes());
    return found;
  };
  for (size_t i = 0; i < joint.primals; ++i) {
    const Value primal = graph_.inputs()[i];
    if (can_.is_read_as_it_is(primal)) continue;
    Block& block = add(primal);
    block.is_repeatable = false;
    block.may_save = can_.is_available(primal);
  }
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    if (node.phase != Phase::Forward) continue;
    for_each_result(node, [&](Value v) {
      if (block_of_[size_t(v.id)] >= 0) return;
      Block& block = add(v);
      const bool is_of_primal = !block.is_repeatable && block.makers.empty();
      if (is_of_primal) return;
      if (block.makers.empty() || block.makers.back() != int32_t(n)) block.makers.push_back(int32_t(n));
      block.is_repeatable = block.is_repeatable && can_.may_recompute(v);
      if (can_.is_seen_by_caller(v)) block.may_save = false;
    });
  }
  const std::vector<bool> read = read_by_backward(joint);
  for (size_t id = 0; id < block_of_.size(); ++id) {
    if (block_of_[id] < 0) continue;
    Block& block = blocks_[size_t(block_of_[id])];
    block.is_needed = block.is_needed || (read[id] && !can_.is_seen_by_caller(Value{int32_t(id)}));
  }
  for (Value v : context.must_save)
    if (block_of_[size_t(v.id)] >= 0) blocks_[size_t(block_of_[size_t(v.id)])].is_kept_anyway = true;
  prefer(context.marked_prefer_recompute);
}

/// With all else that the nodes make which would run again.
void Blocks::prefer(const std::vector<Value>& marked) {
  for (Value v : marked) {
    const int32_t block = block_of_[size_t(v.id)];
    if (block < 0) continue;
    for (int32_t maker : blocks_[size_t(block)].makers)
      for_each_result(graph_.nodes()[size_t(maker)], [&](Value made) {
        if (block_of_[size_t(made.id)] >= 0) blocks_[size_t(block_of_[size_t(made.id)])].is_preferred = true;
      });
  }
}

void Blocks::add_reads(const Joint& joint) {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    if (!block.is_repeatable) continue;
    for (int32_t maker : block.makers) {
      Value made;
      for_each_result(joint.graph.nodes()[size_t(maker)], [&](Value v) {
        if (!made) made = v;
      });
      can_.for_each_argument_again(made, [&](Value v) {
        const int32_t read = block_of_[size_t(v.id)];
        if (read >= 0 && read != int32_t(b)) block.reads.push_back(read);
      });
    }
    std::sort(block.reads.begin(), block.reads.end());
    block.reads.erase(std::unique(block.reads.begin(), block.reads.end()), block.reads.end());
  }
}

std::vector<bool> Blocks::values_in(const std::vector<bool>& kept) const {
  std::vector<bool> found(block_of_.size());
  for (size_t id = 0; id < block_of_.size(); ++id)
    found[id] = block_of_[id] >= 0 && kept[size_t(block_of_[id])];
  return found;
}

std::string Blocks::describe(size_t block) const {
  const std::vector<int32_t>& makers = blocks_[block].makers;
  return graph_.name(first_[block]) +
         (makers.empty() ? " (an input)" : " of " + full_name(graph_.nodes()[size_t(makers[0])].op));
}

}  // namespace tandem
