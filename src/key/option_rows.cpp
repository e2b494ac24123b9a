#include "key/option_rows.h"

#include "graph/vocabulary.h"
#include "key/named_code.h"

namespace tandem {
namespace {

constexpr std::nullopt_t out = std::nullopt;

std::string text(bool set) { return set ? "true" : "false"; }

std::string numbers(const std::vector<size_t>& list) {
  std::string text;
  for (size_t number : list) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

}  // namespace

std::vector<OptionRow> option_rows(const Options& options) {
  // A field that is added to Options does not compile here until it has a name, and then a row.
  const auto& [backend, cudagraphs, partitioner, memory_budget, memory_budget_bytes, cost_model, random,
               keep_input_mutations, watched_calls, must_compile, debug_asserts, record_locations, name,
               watch, max_signatures, static_arguments, fw_compiler, bw_compiler, inference_compiler,
               partition_fn, decompositions, cache] = options;
  return {
      {"backend", in_quotes(backend), "compilers may ask for it; its version is in the component compilers"},
      {"cudagraphs", text(cudagraphs), "what is compiled is recorded and replayed, or is not"},
      {"partitioner", in_quotes(partitioner),
       "compilers may ask for it; its version is in the component partitioner"},
      {"memory_budget", double_word(memory_budget), "what is saved and what is computed again depends on it"},
      {"memory_budget_bytes", memory_budget_bytes ? std::to_string(*memory_budget_bytes) : "none",
       "what is saved and what is computed again depends on it"},
      {"cost_model", out,
       "its name and version are in the component partitioner; empty is the machine's own"},
      {"random", wants_counter_numbers(options) ? "counter" : "libtorch",
       "draws of random numbers are other nodes; empty is what the backend prefers"},
      {"keep_input_mutations", text(keep_input_mutations),
       "writes to inputs are part of the graph, or are not"},
      {"watched_calls", out, "says when compiled code runs, not what it is"},
      {"must_compile", out, "says what happens where nothing is compiled"},
      {"debug_asserts", text(debug_asserts), "compilers may add checks"},
      {"record_locations", text(record_locations),
       "graphs and errors show source locations, or do not; with it, the locations are a component of their "
       "own"},
      {"name", out, "shows in logs, dumps and errors alone"},
      {"watch", out, "what a module's mode changes shows in the trace"},
      {"max_signatures", out, "says how much is kept in memory"},
      {"static_arguments", numbers(static_arguments), "compilers are told which inputs stay where they are"},
      {"fw_compiler", out, "its name and version are in the component compilers"},
      {"bw_compiler", out, "its name and version are in the component compilers"},
      {"inference_compiler", out, "its name and version are in the component compilers"},
      {"partition_fn", out, "its name and version are in the component partitioner"},
      {"decompositions", out, "names and versions are in the component decompositions"},
      {"cache", out, "says where compiled code is kept, not what it is"},
  };
}

std::string options_text(const Options& options) {
  std::string text;
  for (const OptionRow& row : option_rows(options))
    if (row.text) text += std::string(row.name) + ' ' + *row.text + '\n';
  return text;
}

}  // namespace tandem
