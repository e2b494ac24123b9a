#include "aot/known_values.h"

#include <algorithm>

#include "graph/uses.h"

namespace tandem {

bool writes_behind_autograd(const Traced& traced) {
  const Tracer& tracer = *traced.tracer;
  KnownValues known(tracer);
  std::set<int32_t> behind;
  for (size_t n = 0; n < traced.forward_nodes; ++n) {
    const Node& node = tracer.graph().nodes()[n];
    const AutogradOfCall& told = tracer.modes()[n];
    known.go_to(n);
    std::set<int32_t> unknown;
    bool is_read_behind = false;
    size_t place = 0;
    for_each_argument(node, [&](Value value) {
      const bool is_known = place < 64 && (told.reads_grad >> place & 1);
      ++place;
      if (is_known)
        known.add(value);
      else
        unknown.insert(value.id);
      is_read_behind = is_read_behind || (is_known && behind.count(value.id));
    });
    if (is_read_behind) return true;
    for (const auto& [before, after] : node.writes)
      if (unknown.count(before.id) && known.has(before)) behind.insert(after.id);
  }
  const Tensors ends = ends_of(traced);
  return std::any_of(ends.begin(), ends.end(), [&](const at::Tensor& end) {
    return end.defined() && end.requires_grad() && behind.count(as_fake(end)->value.id);
  });
}

}  // namespace tandem
