#include <tandem/partition.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "graph/draws.h"
#include "graph/uses.h"
#include "ops/facts.h"
#include "partition/blocks.h"
#include "partition/cost_model.h"
#include "partition/cut.h"
#include "partition/giving_up.h"
#include "partition/narrow.h"
#include "partition/schedule.h"

namespace tandem {
namespace {

/// How many of the possible splits are looked at for one budget.
constexpr size_t most_tried = 24;
/// A split is only worth its seconds when it lowers the peak by so much.
constexpr double least_gain = 0.01;

class MinCut {
 public:
  MinCut(const Joint& joint, const PartitionContext& context)
      : with_states_(draws(joint) ? std::optional(with_generator_states(joint)) : std::nullopt),
        joint_(with_states_ ? *with_states_ : joint),
        context_(context),
        can_(joint_, primals_read_by_backward(joint_, context), context.marked_must_save),
        blocks_(joint_, context, can_),
        is_for_backward_(read_by_backward_alone(joint_)),
        has_forms_(std::count(is_for_backward_.begin(), is_for_backward_.end(), true) > 0),
        kept_(keep_what_is_fastest()) {}

  Partition run() {
    if (context_.memory_budget >= 1 && !context_.memory_budget_bytes) return split(kept_);
    const std::vector<GivenUp> steps = order_of_giving_up(joint_, blocks_, kept_, cost_model_of(context_));
    const size_t count =
        std::max(steps_for_budget(steps), context_.memory_budget_bytes ? steps_for_bytes(steps) : 0);
    return split(behind(steps, count));
  }

 private:
  static bool draws(const Joint& joint) {
    const auto& nodes = joint.graph.nodes();
    return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return draws_live(node); });
  }

  std::vector<bool> keep_what_is_fastest() const {
    std::vector<bool> kept(blocks_.size()), may_repeat(blocks_.size());
    bool is_trivial = true;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      may_repeat[b] = blocks_[b].is_repeatable && (blocks_[b].is_preferred || takes_no_time(blocks_[b]));
      kept[b] = blocks_[b].is_needed;
      is_trivial = is_trivial && !(kept[b] && may_repeat[b]);
    }
    return is_trivial ? kept : smallest_cut(blocks_, may_repeat);
  }

  bool takes_no_time(const Block& block) const {
    return std::all_of(block.makers.begin(), block.makers.end(), [&](int32_t n) {
      const Node& node = joint_.graph.nodes()[size_t(n)];
      return facts(node.op).view || is_for_backward_[size_t(n)] ||
             (context_.fuses && context_.fuses(joint_.graph, node));
    });
  }

  std::vector<bool> behind(const std::vector<GivenUp>& steps, size_t count) const {
    std::vector<bool> kept = kept_;
    for (size_t i = 0; i < count; ++i) {
      for (size_t b : steps[i].kept_instead) kept[b] = true;
      kept[steps[i].block] = false;
    }
    return kept;
  }

  Partition split(const std::vector<bool>& kept) const {
    Partition halves = split_at(joint_, context_, can_, blocks_.values_in(kept));
    if (has_forms_) halves.backward = without_detours(std::move(halves.backward));
    return scheduled(std::move(halves));
  }

  /// Numbers of steps, from none to all, about equally many bytes apart.
  static std::vector<size_t> tried(const std::vector<GivenUp>& steps) {
    int64_t all = 0, done = 0;
    for (const GivenUp& step : steps) all += step.bytes;
    std::vector<size_t> counts{0};
    double next = double(all) / most_tried;
    for (size_t i = 0; i < steps.size(); ++i) {
      done += steps[i].bytes;
      if (steps.size() > most_tried && double(done) < next && i + 1 < steps.size()) continue;
      next = double(done) + double(all) / most_tried;
      counts.push_back(i + 1);
    }
    return counts;
  }

  /// The fewest that bring the predicted peak down as far as the budget asks for.
  size_t steps_for_budget(const std::vector<GivenUp>& steps) const {
    if (context_.memory_budget >= 1) return 0;
    std::vector<std::pair<size_t, double>> peaks;  // each lower than those before
    for (size_t count : tried(steps)) {
      const double peak = double(predicted_peak_bytes(split(behind(steps, count))));
      if (peaks.empty() || peak < peaks.back().second * (1 - least_gain)) peaks.emplace_back(count, peak);
    }
    const double least = peaks.back().second;
    const double allowed = least + context_.memory_budget * (peaks.front().second - least);
    return std::find_if(peaks.begin(), peaks.end(), [&](const auto& peak) { return peak.second <= allowed; })
        ->first;
  }

  /// The fewest that bring what is kept down to the limit; all where that is not enough.
  size_t steps_for_bytes(const std::vector<GivenUp>& steps) const {
    int64_t bytes = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) bytes += kept_[b] ? blocks_[b].bytes : 0;
    size_t count = 0;
    while (count < steps.size() && bytes > *context_.memory_budget_bytes) bytes -= steps[count++].bytes;
    if (bytes > *context_.memory_budget_bytes)
      warn("at least " + std::to_string(bytes) +
           " bytes have to be kept for a backward; memory_budget_bytes is " +
           std::to_string(*context_.memory_budget_bytes));
    return count;
  }

  const std::optional<Joint> with_states_;  ///< where there is something to draw again
  const Joint& joint_;
  const PartitionContext& context_;
  const Recomputation can_;
  const Blocks blocks_;
  const std::vector<bool> is_for_backward_;  ///< nodes that run once whichever half runs them
  const bool has_forms_;                     ///< there may be narrow ones among these
  const std::vector<bool> kept_;
};

}  // namespace

Partition partition_min_cut(const Joint& joint, const PartitionContext& context) {
  refuse_if_forward_needs_backward(joint);
  return MinCut(joint, context).run();
}

}  // namespace tandem
