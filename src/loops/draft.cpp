#include "loops/draft.h"

#include <algorithm>

#include "loops/drafting.h"
#include "loops/nests.h"

namespace tandem::loops {
namespace {

/// Loops of one step lead nowhere.
void drop_still_loops(Draft& draft) {
  for (size_t loop = draft.nest.size(); loop-- > 0;) {
    if (draft.nest[loop].size > 1) continue;
    const auto at = int64_t(loop);
    draft.nest.erase(draft.nest.begin() + at);
    for (Element& load : draft.loads) load.access.strides.erase(load.access.strides.begin() + at);
    for (Draft::Stored& stored : draft.stores)
      stored.to.access.strides.erase(stored.to.access.strides.begin() + at);
  }
}

constexpr int most_splits = 8;
constexpr size_t most_parts = 16;

/// All parts of one nest.
class Parts {
 public:
  Parts(const Source& source, std::span<const int32_t> members, const LoopNest& nest)
      : source_(source), members_(members), nest_(nest), pending_{{nest, Dims(nest.size(), 0)}} {}

  /// False where it cannot be done, or not with this nest: `split` says what to change then.
  bool run(std::span<const Value> wanted) {
    while (!pending_.empty()) {
      const Part part = std::move(pending_.back());
      pending_.pop_back();
      Drafting drafting(source_, members_, nest_, part);
      if (drafting.run(wanted)) {
        drafts_.push_back(drafting.take());
      } else if (drafting.cut && drafts_.size() + pending_.size() + 2 <= most_parts) {
        cut(part, *drafting.cut);
      } else {
        split = drafting.split;
        return false;
      }
    }
    return std::all_of(wanted.begin(), wanted.end(), [&](Value value) { return is_stored(value); });
  }

  std::optional<Split> split;
  std::vector<Draft> take() {
    for (Draft& draft : drafts_) drop_still_loops(draft);
    return std::move(drafts_);
  }

 private:
  void cut(const Part& part, const Cut& cut) {
    Part before = part, behind = part;
    before.nest[cut.loop].size = cut.steps;
    behind.nest[cut.loop].size -= cut.steps;
    behind.first[cut.loop] += cut.steps;
    pending_.push_back(std::move(behind));
    pending_.push_back(std::move(before));
  }

  /// Whether one part has all of it, or each its own.
  bool is_stored(Value value) const {
    int64_t count = 0;
    for (const Draft& draft : drafts_)
      for (const Draft::Stored& stored : draft.stores)
        if (stored.to.value == value) count += elements(draft.nest, stored.to.access);
    return count >= source_.graph.meta(value).numel();
  }

  const Source& source_;
  const std::span<const int32_t> members_;
  const LoopNest& nest_;
  std::vector<Part> pending_;
  std::vector<Draft> drafts_;
};

}  // namespace

std::vector<Draft> draft(const Source& source, std::span<const int32_t> members,
                         std::span<const Value> wanted) {
  LoopNest nest = widest_nest(source.graph, members);
  for (int attempt = 0; attempt <= most_splits; ++attempt) {
    Parts parts(source, members, nest);
    if (parts.run(wanted)) return parts.take();
    if (!parts.split || nest[parts.split->loop].size % parts.split->inner != 0) return {};
    const auto [loop, inner] = *parts.split;
    nest[loop].size /= inner;
    nest.insert(nest.begin() + int64_t(loop) + 1, {inner, nest[loop].reduced});
  }
  return {};
}

}  // namespace tandem::loops
