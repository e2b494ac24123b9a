#include "partition/saved_values.h"

#include <algorithm>
#include <cmath>

#include "graph/draws.h"
#include "graph/uses.h"
#include "ops/facts.h"
#include "ops/generator_state.h"
#include "partition/split.h"

namespace tandem {
namespace {

class Describer {
 public:
  Describer(const Partition& halves, size_t returned, const CostModel& cost_model)
      : forward_(halves.forward),
        cost_model_(cost_model),
        alone_{halves.forward, halves.forward.inputs().size(), returned},
        can_(alone_),
        maker_(makers(halves.forward)),
        inputs_(storages_of_inputs(halves.forward)),
        counted_(inputs_) {
    for (size_t i = 0; i < returned; ++i)
      if (Value output = forward_.outputs()[i]) outputs_.insert(forward_.meta(output).storage);
    counted_.insert(outputs_.begin(), outputs_.end());
  }

  /// `reads` counts how often the backward reads it.
  SavedValue describe(Value v, int32_t reads, bool is_marked) {
    const int32_t maker = maker_[size_t(v.id)], storage = forward_.meta(v).storage;
    const bool adds_bytes = storage < 0 || counted_.insert(storage).second;
    SavedValue found{.name = forward_.name(v),
                     .bytes = adds_bytes ? forward_.meta(v).storage_bytes() : 0,
                     .why = reason(v, adds_bytes, reads, is_marked)};
    if (maker != no_node) {
      const Node& node = forward_.nodes()[size_t(maker)];
      found.op = full_name(node.op);
      found.location = node.location;
    }
    return found;
  }

 private:
  std::string reason(Value v, bool adds_bytes, int32_t reads, bool is_marked) const {
    const int32_t storage = forward_.meta(v).storage, maker = maker_[size_t(v.id)];
    if (inputs_.contains(storage)) return "an input, or in the memory of one";
    if (outputs_.contains(storage)) return "an output, or in the memory of one";
    if (!adds_bytes) return "in memory that is kept already";
    if (is_marked) return "marked must_save";
    if (reads == 0) return "derivatives of higher order read it";
    if (maker == no_node) return "a constant";
    const Node& node = forward_.nodes()[size_t(maker)];
    if (reads_generator(node.op)) return "the generator's state, to draw from again";
    if (facts(node.op).random) return "random";
    if (!can_.may_recompute(v)) return "cannot be computed again";
    return "takes " + std::to_string(std::lround(std::ceil(cost_model_(forward_, node) * 1e6))) +
           " us to compute again";
  }

  const Graph& forward_;
  const CostModel& cost_model_;
  const Joint alone_;  ///< the forward without its backward
  const Recomputation can_;
  const std::vector<int32_t> maker_;
  const std::unordered_set<int32_t> inputs_;
  std::unordered_set<int32_t> outputs_, counted_;
};

}  // namespace

std::vector<SavedValue> describe_saved(const Partition& halves, size_t returned, const CostModel& cost_model,
                                       const std::vector<size_t>& marked) {
  Describer describer(halves, returned, cost_model);
  const std::vector<int32_t> reads = read_counts(halves.backward);
  std::vector<SavedValue> found;
  for (size_t i = 0; i < halves.saved.size(); ++i)
    found.push_back(describer.describe(halves.saved[i], reads[size_t(halves.backward.inputs()[i].id)],
                                       std::binary_search(marked.begin(), marked.end(), i)));
  return found;
}

}  // namespace tandem
