#include "key/fingerprint.h"

#include <ATen/Parallel.h>

#include <set>

#include "base/machine.h"
#include "base/modes.h"
#include "key/cacheability.h"
#include "key/call_texts.h"
#include "key/history_text.h"
#include "key/named_code.h"
#include "key/option_rows.h"
#include "ops/facts.h"
#include "ops/versions.h"

namespace tandem {
namespace {

/// Devices of the tensors that a trace computes, as text, so that their order is everywhere the same.
std::set<std::string> devices_of(const Graph& trace) {
  std::vector<c10::Device> seen;
  for (size_t id = 0; id < trace.value_count(); ++id) {
    const c10::Device device = trace.meta(Value{int32_t(id)}).device;
    if (std::find(seen.begin(), seen.end(), device) == seen.end()) seen.push_back(device);
  }
  std::set<std::string> names;
  for (c10::Device device : seen) names.insert(device.str());
  return names;
}

std::string machine_text(const std::set<std::string>& devices) {
  std::string text;
  for (const std::string& name : devices) {
    const c10::Device device(name);
    if (device.is_cpu()) text += cpu_identity();
    if (device.is_cuda()) text += name + ": " + gpu_identity(device.index());
  }
  return text;
}

/// The interpreters ask for the number of threads when they run; other code may have been divided for it.
std::string threads_text(const std::set<std::string>& devices, const Options& options) {
  if (!devices.count("cpu") || is_interpreted(options)) return "as many as there are at run time\n";
  return std::to_string(at::get_num_threads()) + "\n";
}

std::string lines(const auto& versions) {
  std::string text;
  for (const auto& [name, version] : versions) text += name + " version " + version + '\n';
  return text;
}

/// Of the libraries whose operators the trace calls; of all, where custom functions may call any in their
/// backwards.
std::string libraries_text(const Graph& trace, bool has_custom_functions) {
  std::map<std::string, std::string> used, all = library_versions();
  for (const Node& node : trace.nodes())
    if (const std::string library = library_of(node.op.operator_name().name); !belongs_to_libtorch(library))
      used[library] = all[library];
  std::string text = lines(has_custom_functions ? all : used);
  for (const std::string& op : declared_side_effects()) text += op + " has an effect\n";
  return text;
}

/// The same operators have the same history in a checkpoint, and another backward.
std::string checkpoints_text(const Tracer& tracer) {
  std::string text;
  for (const auto& [first, end] : tracer.checkpoints())
    text += "from " + std::to_string(first) + " to " + std::to_string(end) + '\n';
  return text;
}

/// The first that is not empty.
std::string first_of(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons)
    if (!reason.empty()) return reason;
  return {};
}

}  // namespace

Fingerprint fingerprint(const Traced& traced, const Plan& plan, const Options& options) {
  const Graph& trace = traced.tracer->graph();
  const HistoryText history = describe_history(traced, plan);
  const auto compilers = compilers_of(options), partitioner = partitioner_of(options),
             passes = passes_in_use(), decompositions = decompositions_of(options);
  const auto devices = devices_of(trace);

  Fingerprint made;
  made.obstacle = first_of(
      {find_obstacle(trace), history.obstacle, first_unnamed(compilers), first_unnamed(partitioner),
       first_unnamed(passes), first_unnamed(decompositions),
       traced.tracer->met_unknown_hooks() ? "hooks on saved tensors are set, whose code is unknown" : ""});
  auto add = [&](const char* name, std::string text) {
    made.components.push_back(cache::component_of(name, std::move(text)));
  };
  add("history", history.text);
  add("inputs", inputs_text(traced));
  add("contract", contract_text(plan));
  add("options", options_text(options));
  add("modes", Modes::now(!is_interpreted(options)).to_string());
  add("compilers", to_string(compilers));
  add("partitioner", to_string(partitioner));
  add("passes", to_string(passes));
  add("decompositions", to_string(decompositions));
  add("functions", history.has_custom_functions ? lines(function_versions()) : "");
  add("libraries", libraries_text(trace, history.has_custom_functions));
  add("threads", threads_text(devices, options));
  add("machine", machine_text(devices));
  add("libtorch", libtorch_identity());
  add("tandem", tandem_identity());
  if (!traced.tracer->checkpoints().empty()) add("checkpoints", checkpoints_text(*traced.tracer));
  if (options.record_locations) add("locations", locations_text(trace));
  if (constant_bytes(trace) > most_constant_bytes) return made;
  try {
    made.components.push_back({"trace", trace.hash(), {}});
  } catch (const Error& error) {
    if (made.obstacle.empty()) made.obstacle = error.what();
    return made;
  }
  made.key = cache::key_of(made.components);
  return made;
}

void add_backward(Fingerprint& made, const Graph& joint) {
  if (made.key.empty()) return;
  try {
    made.components.push_back({"backward", joint.hash(), {}});
    made.key = cache::key_of(made.components);
  } catch (const Error& error) {
    if (made.obstacle.empty()) made.obstacle = error.what();
  }
}

cache::Components readable(cache::Components components, const Graph& trace) {
  for (cache::Component& component : components)
    if (component.name == "trace") component.text = trace_text(trace);
  return components;
}

}  // namespace tandem
