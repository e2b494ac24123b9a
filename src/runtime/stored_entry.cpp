// An entry to what the cache stores of it, and back.
#include "key/cacheability.h"
#include "key/option_rows.h"
#include "runtime/entry.h"

#include "base/machine.h"

namespace tandem {
namespace {

std::string first_obstacle(const cache::StoredOrder& order) {
  for (const Graph* graph : {&order.halves.forward, &order.halves.backward})
    if (std::string found = find_obstacle(*graph); !found.empty()) return found;
  for (const cache::StoredBackward& backward : order.backwards)
    if (std::string found = find_obstacle(backward.graph_in(order.halves)); !found.empty()) return found;
  for (const cache::StoredOrder& above : order.above)
    if (std::string found = first_obstacle(above); !found.empty()) return found;
  return {};
}

/// Where it lies in memory is left out: new contents of an input are computed beside it.
bool same_kind(const TensorMeta& a, const TensorMeta& b) {
  return a.sizes == b.sizes && a.dtype == b.dtype && a.device == b.device;
}

}  // namespace

/// What of a stored entry is not what this call needs, as the end of a sentence; the key says that all of it
/// is, and this does not take its word.
std::string Entry::misfit(const cache::StoredEntry& entry) const {
  const Graph &forward = entry.first.halves.forward, &trace = compilation_.traced.tracer->graph();
  if (forward.inputs().size() != trace.inputs().size() || forward.inputs().size() != graph_inputs())
    return "takes another number of inputs";
  for (size_t i = 0; i < forward.inputs().size(); ++i)
    if (!same_geometry(forward.meta(forward.inputs()[i]), trace.meta(trace.inputs()[i])))
      return "takes inputs of other geometry";
  if (entry.first.returned != plan().returned.size() ||
      forward.outputs().size() != plan().returned.size() + entry.first.halves.saved.size())
    return "returns another number of tensors";
  for (size_t i = 0; i < plan().returned.size(); ++i)
    if (const Value made = forward.outputs()[i];
        made &&
        !same_kind(forward.meta(made), trace.meta(compilation_.traced.tracer->value_of(plan().returned[i]))))
      return "returns tensors of another kind";
  if (trains != entry.first.has_backward()) return "is differentiated otherwise";
  if (trains && entry.first.expected != expected_variant(compilation_.first)) return "expects other tangents";
  return {};
}

void Entry::restore(cache::Found& found) {
  cache::StoredEntry& entry = found.entry;
  if (std::string why = misfit(entry); !why.empty()) throw Error("it " + why);
  first_ = std::make_unique<Derivative>(compilation_, std::move(entry.first), found.artifacts);
  nodes_recorded_ = entry.nodes_recorded;
  eager_saved_bytes_ = entry.eager_saved_bytes;
  reads_offsets_ = entry.reads_offsets;
  compilation_.times.joint = entry.trace_seconds;
  compilation_.times.forward = entry.forward_seconds;
  compilation_.times.backward = entry.backward_seconds;
  note_halves();
}

void Entry::remember() {
  if (!remembered_.saves()) return;
  try {
    std::map<std::string, std::string> artifacts;
    cache::StoredEntry entry;
    auto first = first_->stored(artifacts);
    if (!first) return remembered_.bypass("backend " + compilation_.options.backend + " has no artifacts");
    entry.first = std::move(*first);
    if (std::string obstacle = first_obstacle(entry.first); !obstacle.empty())
      return remembered_.bypass(obstacle);
    describe(entry);
    remembered_.save(std::move(entry), artifacts);
  } catch (const CacheError&) {
    throw;
  } catch (const Error& error) {
    remembered_.bypass(error.what());
  } catch (const std::exception& error) {
    remembered_.fail(error.what());
  }
}

void Entry::describe(cache::StoredEntry& entry) const {
  entry.components = readable(remembered_.fingerprint().components, compilation_.traced.tracer->graph());
  entry.contract = contract_of(plan().roles).to_string();
  entry.options = options_text(compilation_.options);
  entry.backend = compilation_.options.backend;
  if (!compilation_.toolchain.is_of_own_compiler(Stage::Forward))
    entry.backend_version = find_backend(compilation_.options.backend)->version();
  entry.machine = cpu_identity();
  entry.nodes_recorded = nodes_recorded_;
  entry.eager_saved_bytes = eager_saved_bytes_;
  entry.reads_offsets = reads_offsets_;
  // Whoever finds it by its backward has recorded that.
  entry.trace_seconds = compilation_.traced.tracer->met_hosts_hooks() ? 0 : compilation_.times.joint;
  entry.forward_seconds = compilation_.times.forward;
  entry.backward_seconds = compilation_.times.backward;
}

}  // namespace tandem
