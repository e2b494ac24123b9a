#include "key/named_code.h"

#include "graph/vocabulary.h"

namespace tandem {

DecompositionTable wanted_decompositions(const Options& options) {
  if (options.decompositions) return *options.decompositions;
  return options.fw_compiler ? DecompositionTable() : find_backend(options.backend)->decompositions();
}

std::vector<Pass> wanted_passes(const Options& options, Stage stage) {
  std::vector<Pass> passes = registered_passes(stage);
  if (options.fw_compiler) return passes;
  for (Pass& pass : find_backend(options.backend)->passes(stage)) passes.push_back(std::move(pass));
  return passes;
}

bool wants_counter_numbers(const Options& options) {
  if (!options.random.empty()) return options.random == "counter";
  return !options.fw_compiler && find_backend(options.backend)->prefers_counter_numbers();
}

const Compiler* own_compiler(const Options& options, Stage stage) {
  const Compiler& own = stage == Stage::Backward    ? options.bw_compiler
                        : stage == Stage::Inference ? options.inference_compiler
                                                    : options.fw_compiler;
  if (own) return &own;
  return options.fw_compiler ? &options.fw_compiler : nullptr;
}

bool is_interpreted(const Options& options) {
  for (Stage stage : {Stage::Forward, Stage::Backward, Stage::Inference})
    if (own_compiler(options, stage)) return false;
  return options.backend == "eager" || options.backend == "debug";
}

std::vector<NamedCode> compilers_of(const Options& options) {
  static constexpr std::pair<Stage, const char*> stages[] = {
      {Stage::Forward, "the compiler of the forward"},
      {Stage::Backward, "the compiler of the backward"},
      {Stage::Inference, "the compiler of inference"}};
  std::vector<NamedCode> used;
  for (const auto& [stage, role] : stages) {
    if (const Compiler* own = own_compiler(options, stage)) {
      used.push_back({role, own->name, own->version});
    } else {
      const auto backend = find_backend(options.backend);
      used.push_back({role, "backend " + backend->name(), backend->version()});
    }
  }
  return used;
}

std::vector<NamedCode> partitioner_of(const Options& options) {
  const Partitioner& own = options.partition_fn;
  const Partitioner used_one = own ? own : find_partitioner(options.partitioner);
  std::vector<NamedCode> used{
      {"the partitioner", own ? own.name : "registered " + options.partitioner, used_one.version}};
  if (used_one.takes_narrow_forms && !used_one.version.empty()) used[0].version += " with narrow forms";
  if (options.cost_model)
    used.push_back({"the cost model", options.cost_model.name, options.cost_model.version});
  return used;
}

std::vector<NamedCode> passes_in_use() {
  static constexpr std::pair<Stage, const char*> stages[] = {
      {Stage::Joint, "a pass over joint graphs"},
      {Stage::Forward, "a pass over forwards"},
      {Stage::Backward, "a pass over backwards"},
      {Stage::Inference, "a pass over inference graphs"}};
  std::vector<NamedCode> used;
  for (const auto& [stage, role] : stages)
    for (const Pass& pass : registered_passes(stage)) used.push_back({role, pass.name, pass.version});
  return used;
}

std::vector<NamedCode> decompositions_of(const Options& options) {
  std::vector<NamedCode> used;
  for (const auto& [op, rule] : wanted_decompositions(options))
    used.push_back({"the decomposition of " + op, rule.name, rule.version});
  return used;
}

std::string to_string(const std::vector<NamedCode>& code) {
  std::string text;
  for (const auto& [role, name, version] : code)
    text += role + ": " + in_quotes(name) + " version " + in_quotes(version) + '\n';
  return text;
}

std::string first_unnamed(const std::vector<NamedCode>& code) {
  for (const auto& [role, name, version] : code)
    if (name.empty() || version.empty())
      return role + (name.empty() ? " has no name" : " ('" + name + "') has no version") +
             "; give it both, so that a changed one is told from the one that it was";
  return {};
}

}  // namespace tandem
