#include "bench.h"
#include "commands.h"
#include "table.h"

#include <tandem/error.h>
#include <tandem/script.h>

#include <ATen/ATen.h>
#include <CLI/CLI.hpp>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <charconv>
#include <iostream>

namespace tandem::cli {

namespace {

struct ExplainOptions {
  std::string file, backend = Options{}.backend;
  std::vector<std::string> inputs;
  bool evaluate = false, json = false;
};

const std::map<std::string, at::ScalarType> dtypes = {
    {"f16", at::kHalf}, {"bf16", at::kBFloat16}, {"f32", at::kFloat}, {"f64", at::kDouble}, {"u8", at::kByte},
    {"i8", at::kChar},  {"i16", at::kShort},     {"i32", at::kInt},   {"i64", at::kLong},   {"b8", at::kBool},
};

[[noreturn]] void refuse(const std::string& text) {
  std::string names;
  for (auto& [name, dtype] : dtypes) names += " " + name;
  throw Error("\"" + text +
              "\" is no input; write sizes joined by x and a dtype, as in 2x3:f32 (no sizes for a single "
              "number, as in :i64). The dtypes are:" +
              names);
}

std::vector<int64_t> parse_sizes(const std::string& text, const std::string& whole) {
  std::vector<int64_t> sizes;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('x', start), text.size());
    int64_t size = 0;
    const auto [stop, error] = std::from_chars(text.data() + start, text.data() + end, size);
    if (error != std::errc() || stop != text.data() + end || size < 0 || end + 1 == text.size())
      refuse(whole);
    sizes.push_back(size);
    start = end + 1;
  }
  return sizes;
}

/// Random numbers; zeros where the dtype is not floating-point, since those are most often indices.
at::Tensor parse_input(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string dtype = colon == std::string::npos ? "f32" : text.substr(colon + 1);
  if (!dtypes.contains(dtype)) refuse(text);
  const std::vector<int64_t> sizes = parse_sizes(text.substr(0, colon), text);
  const at::ScalarType type = dtypes.at(dtype);
  return at::isFloatingType(type) ? at::randn(sizes, type) : at::zeros(sizes, type);
}

torch::jit::Module load(const ExplainOptions& options) {
  torch::jit::Module module = torch::jit::load(options.file);
  module.train(!options.evaluate);
  return module;
}

Json json_of(const SavedValue& saved) {
  return {{"name", saved.name},
          {"bytes", saved.bytes},
          {"operator", saved.op},
          {"location", saved.location},
          {"why", saved.why}};
}

constexpr const char* names[] = {"joint", "forward", "backward", "inference"};  ///< of stages

Json json_of(const KernelInfo& kernel) {
  return {{"stage", names[size_t(kernel.stage)]},
          {"name", kernel.name},
          {"generated", kernel.is_generated},
          {"nodes", kernel.nodes}};
}

std::string table_of_calls(const Explanation& found) {
  std::vector<Row> rows = {{"calls of a step", "generated kernels", "of libraries"}};
  for (Stage stage : {Stage::Forward, Stage::Backward, Stage::Inference}) {
    const CallCounts counts = found.calls(stage);
    if (counts.kernels + counts.library_calls > 0)
      rows.push_back(
          {names[size_t(stage)], std::to_string(counts.kernels), std::to_string(counts.library_calls)});
  }
  return table(rows);
}

/// What takes memory, the largest first.
std::string table_of(std::vector<SavedValue> saved) {
  std::erase_if(saved, [](const SavedValue& value) { return value.bytes == 0; });
  std::stable_sort(saved.begin(), saved.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::vector<Row> rows = {{"kept", "size", "operator", "place", "why"}};
  for (const SavedValue& value : saved)
    rows.push_back({value.name, kilobytes(double(value.bytes)), value.op,
                    value.location.empty() ? "-" : value.location, value.why});
  return table(rows);
}

void print_json(const Explanation& found) {
  Json saved = Json::array();
  for (const SavedValue& value : found.saved) saved.push_back(json_of(value));
  Json kernels = Json::array();
  for (const KernelInfo& kernel : found.kernels) kernels.push_back(json_of(kernel));
  std::cout << Json{{"joint", found.joint.to_string()},
                    {"forward", found.forward.to_string()},
                    {"backward", found.backward.empty() ? Json() : Json(found.backward.to_string())},
                    {"contract", found.contract.to_string()},
                    {"key", found.key},
                    {"cache_state", found.cache_state},
                    {"bypass_reason", found.bypass_reason},
                    {"eager_reason", found.eager_reason},
                    {"nodes", found.nodes_recorded},
                    {"saved_bytes", found.saved_bytes},
                    {"eager_saved_bytes", found.eager_saved_bytes},
                    {"predicted_peak_bytes", found.predicted_peak_bytes},
                    {"saved", saved},
                    {"kernels", kernels},
                    {"trace_s", found.trace_seconds},
                    {"compile_s", found.compile_seconds}}
                   .dump()
            << std::endl;
}

void print_text(const Explanation& found) {
  if (!found.eager_reason.empty())
    std::cout << "Calls like this run as they are, uncompiled: " << found.eager_reason << "\n\n";
  std::cout << "joint\n" << found.joint.to_string() << "\n\nforward\n" << found.forward.to_string() << "\n\n";
  if (!found.backward.empty()) std::cout << "backward\n" << found.backward.to_string() << "\n\n";
  std::cout << "contract\n"
            << found.contract.to_string() << "\n\n"
            << "key " << found.key << "\ncache " << found.cache_state
            << (found.bypass_reason.empty() ? "" : ": " + found.bypass_reason) << "\n\n"
            << table({{"", "tandem", "eager"},
                      {"nodes recorded", std::to_string(found.nodes_recorded), "-"},
                      {"kept between forward and backward", megabytes(found.saved_bytes),
                       megabytes(found.eager_saved_bytes)},
                      {"trace", duration(found.trace_seconds), "-"},
                      {"highest memory of a step, predicted", megabytes(found.predicted_peak_bytes), "-"},
                      {"compile", duration(found.compile_seconds), "-"}});
  if (!found.kernels.empty()) std::cout << "\n" << table_of_calls(found);
  if (!found.saved.empty()) std::cout << "\n" << table_of(found.saved);
}

}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain", "Compiles a TorchScript file for given inputs and prints its graphs and its contract");
  command->add_option("file", options->file, "A file that torch.jit.save or torch::jit::Module::save wrote")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option(
      "--input", options->inputs,
      "Sizes and dtype of one argument, as in 2x3:f32; repeated in the order of the arguments");
  command->add_option("--backend", options->backend, "Which backend compiles")->capture_default_str();
  command->add_flag("--eval", options->evaluate,
                    "Compile the module in evaluation mode rather than in training mode");
  command->add_flag("--json", options->json, "One JSON object");
  command->callback([options] {
    std::vector<c10::IValue> arguments;
    for (const std::string& input : options->inputs) arguments.emplace_back(parse_input(input));
    const Explanation found =
        compile(load(*options), {.backend = options->backend}).explain(std::move(arguments));
    if (options->json)
      print_json(found);
    else
      print_text(found);
  });
}

}  // namespace tandem::cli
