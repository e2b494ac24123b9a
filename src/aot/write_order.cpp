#include "aot/write_order.h"

#include "graph/geometry.h"
#include "ops/facts.h"

namespace tandem {
namespace {

/// Whether another argument lies where the only write goes: eager's kernel then reads some elements before
/// and some after they are written, unless each is read just where it is written.
bool reads_beside_its_write(const Graph& trace, const Node& node) {
  const auto& targets = facts(node.op).written;
  const TensorMeta& target = trace.meta(node.writes[0].first);
  const bool element_by_element = facts(node.op).kind == Kind::Pointwise;
  bool found = false;
  for (size_t a = 0; a < node.arguments.size(); ++a) {
    const bool is_target = std::find(targets.begin(), targets.end(), int(a)) != targets.end();
    for_each_value(node.arguments[a], [&](Value v) {
      const TensorMeta& read = trace.meta(v);
      // An empty tensor overlaps nothing, and yet kernels refuse to be given their target to read.
      if (is_target || (v != node.writes[0].first && !may_overlap(read, target))) return;
      found = found || !element_by_element || !same_geometry(read, target);
    });
  }
  return found;
}

/// Whether reading one and writing the other depends on the order of elements.
bool lies_beside(const Graph& trace, Value read, Value written) {
  if (!read) return false;
  const TensorMeta &r = trace.meta(read), &w = trace.meta(written);
  return may_overlap(r, w) && !same_geometry(r, w);
}

/// List operators go from element to element, so that a later one sees what was written for an earlier one.
bool reads_earlier_elements(const Graph& trace, const Node& node) {
  auto written_before = [&](Value value, size_t position) {
    for (size_t i = 0; i < position && value; ++i) {
      if (value == node.writes[i].first || may_overlap(trace.meta(node.writes[i].first), trace.meta(value)))
        return true;
    }
    return false;
  };
  for (size_t i = 0; i < node.writes.size(); ++i)
    if (written_before(node.writes[i].first, i)) return true;
  const auto& targets = facts(node.op).written;
  for (size_t a = 0; a < node.arguments.size(); ++a) {
    if (std::find(targets.begin(), targets.end(), int(a)) != targets.end()) continue;
    const auto* list = std::get_if<std::vector<Value>>(&node.arguments[a]);
    if (const auto* one = std::get_if<Value>(&node.arguments[a]);
        one && written_before(*one, node.writes.size()))
      return true;
    for (size_t i = 0; list && i < list->size(); ++i)
      if (written_before((*list)[i], i) ||
          (i < node.writes.size() && lies_beside(trace, (*list)[i], node.writes[i].first)))
        return true;
  }
  return false;
}

}  // namespace

bool reads_what_it_writes(const Graph& trace, const Node& node) {
  if (node.writes.size() > 1) return reads_earlier_elements(trace, node);
  // Backward formulas of libtorch write what they made themselves.
  return node.writes.size() == 1 && node.phase == Phase::Forward && reads_beside_its_write(trace, node);
}

}  // namespace tandem
