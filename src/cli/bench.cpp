#include "bench.h"

#include "backends/kept_memory.h"
#include "commands.h"
#include "measure.h"
#include "process.h"
#include "table.h"

#include <tandem/backend.h>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include <iostream>

namespace tandem::cli {

namespace {

constexpr int warm_up_steps = 3, compared_steps = 5;

/// Four digits after the point: what a timing means at most.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }

double milliseconds(const std::vector<double>& times) { return rounded(median(times) * 1e3); }

Json mean(const Json& a, const Json& b) {
  return a.is_null() || b.is_null() ? Json() : Json((a.get<double>() + b.get<double>()) / 2);
}

/// Tandem and Python in turn, two runs each: the first Python process finds an empty compiler cache, the
/// second a filled one.
void contest_with_peers(Contest& contest, StepTimes& times, const std::string& model,
                        const BenchOptions& options, Json& line) {
  ScratchFolder cache;
  alternate(contest, options.seconds / 2, times);
  Json cold = run_peer(model, options, options.seconds / 2, cache.path);
  alternate(contest, options.seconds / 2, times);
  Json warm = run_peer(model, options, options.seconds / 2, cache.path);
  Json eager = mean(cold["eager_ms"], warm["eager_ms"]),
       compiled = mean(cold["compiled_ms"], warm["compiled_ms"]);
  line["peer_eager_ms"] = eager;
  line["peer_compiled_ms"] = compiled;
  line["peer_speedup"] = compiled.is_null() ? Json() : Json(eager.get<double>() / compiled.get<double>());
  line["peer_cold_s"] = cold["compiled_first_s"];
  line["peer_warm_s"] = warm["compiled_first_s"];
}

/// Null where the backend does not say.
void add_calls(const Explanation& explanation, Json& line) {
  const CallCounts forward = explanation.calls(Stage::Forward), backward = explanation.calls(Stage::Backward);
  const bool is_known = !explanation.kernels.empty();
  line["kernels"] = is_known ? Json(forward.kernels + backward.kernels) : Json();
  line["library_calls"] = is_known ? Json(forward.library_calls + backward.library_calls) : Json();
}

Json bench_line(const std::string& model, const std::string& backend, const BenchOptions& options) {
  const c10::Device device(options.device);
  Contest contest(bench::make_benchmark(model, device, options.gpt), device,
                  compile_options(options, backend));
  Json peers = Json::object();
  StepTimes times;
  for (int i = 0; i < warm_up_steps; ++i) contest.eager_step(), contest.compiled_step();
  if (options.peers)
    contest_with_peers(contest, times, model, options, peers);
  else
    alternate(contest, options.seconds, times);
  const size_t held = held_bytes();
  release_kept_memory();  // of this model and backend alone was measured
  const ScratchFolder cache;
  const Json eager_first = first_step(options, model, {}, cache.path),
             cold = first_step(options, model, backend, cache.path),
             warm = first_step(options, model, backend, cache.path);
  const bool loaded = warm["cache_state"] == "hit";
  const Explanation explanation = contest.explain();
  const double eager_ms = milliseconds(times.eager), tandem_ms = milliseconds(times.compiled);
  Json line = {{"model", model},
               {"device", options.device},
               {"backend", backend},
               {"threads", at::get_num_threads()},
               {"nodes", explanation.nodes_recorded},
               {"eager_ms", eager_ms},
               {"tandem_ms", tandem_ms},
               {"speedup", rounded(eager_ms / tandem_ms)},
               {"max_error", contest.max_error(compared_steps)},
               {"eager_first_s", eager_first["first_s"]},
               {"cold_s", cold["first_s"]},
               {"warm_s", loaded ? warm["first_s"] : Json()},
               {"compile_s", cold["compile_s"]},
               {"load_s", loaded ? warm["compile_s"] : Json()},
               {"saved_bytes", explanation.saved_bytes},
               {"eager_saved_bytes", explanation.eager_saved_bytes},
               {"predicted_peak_bytes", explanation.predicted_peak_bytes},
               {"peak_bytes", contest.compiled_peak_bytes()},
               {"eager_peak_bytes", contest.eager_peak_bytes()},
               {"held_bytes", held}};
  add_calls(explanation, line);
  line.update(peers);
  return line;
}

std::string cell(const Json& value, int digits) {
  return value.is_null() ? "-" : fixed(value.get<double>(), digits);
}

std::string ratio(const Json& a, const Json& b) {
  return factor(a.get<double>() / std::max(1.0, b.get<double>()));
}

Row table_row(const Json& line, bool peers) {
  char error[32];
  std::snprintf(error, sizeof error, "%.2g", line["max_error"].get<double>());
  Row row{line["model"],
          line["backend"],
          cell(line["eager_ms"], 2),
          cell(line["tandem_ms"], 2),
          factor(line["speedup"]),
          error,
          cell(line["cold_s"], 3),
          cell(line["warm_s"], 3),
          cell(line["compile_s"], 3),
          cell(line["load_s"], 3),
          megabytes(line["saved_bytes"]),
          ratio(line["saved_bytes"], line["eager_saved_bytes"]),
          megabytes(line["peak_bytes"]),
          ratio(line["peak_bytes"], line["eager_peak_bytes"]),
          cell(line["kernels"], 0),
          cell(line["library_calls"], 0)};
  if (peers)
    row.insert(row.end(), {cell(line["peer_eager_ms"], 2), cell(line["peer_compiled_ms"], 2),
                           cell(line["peer_cold_s"], 1), cell(line["peer_warm_s"], 1)});
  return row;
}

Row table_head(bool peers) {
  Row row{"model",        "backend",    "eager ms",  "tandem ms",    "speed-up", "max error",
          "first step s", "warm s",     "compile s", "load s",       "saved",    "of eager's",
          "peak",         "of eager's", "kernels",   "library calls"};
  if (peers) row.insert(row.end(), {"python eager ms", "python compiled ms", "cold s", "warm s"});
  return row;
}

void print_models(const BenchOptions& options) {
  // a wrong name fails before any time is spent
  for (const std::string& backend : options.backends) find_backend(backend);
  std::vector<Row> rows{table_head(options.peers)};
  for (const std::string& model : options.models)
    for (const std::string& backend : options.backends) {
      if (!options.json) std::cerr << "measuring " << model << " with " << backend << "\n";
      Json line = bench_line(model, backend, options);
      if (options.json)
        std::cout << line.dump() << std::endl;
      else
        rows.push_back(table_row(line, options.peers));
    }
  if (!options.json) std::cout << table(rows);
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measures compiled training steps against eager ones on the benchmark models");
  const std::vector<std::string> models = bench::model_names();
  command->add_option("--model", options->models, "Which model; may be repeated; all of them when left out")
      ->check(CLI::IsMember(models));
  command->add_option("--backend", options->backends, "Which backend; may be repeated");
  command->add_option("--device", options->device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--partitioner", options->partitioner, "How graphs are split")->capture_default_str();
  command->add_option("--partition-for", options->partition_for,
                      "Split for this backend, whichever one runs: what it fuses counts as free to compute "
                      "again");
  command->add_option("--against", options->against,
                      "Compiled steps against those of another partitioner instead of eager ones");
  command
      ->add_option("--threads", options->threads,
                   "Threads of libtorch's CPU operators; its own choice when left out")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seconds", options->seconds, "How long eager and compiled steps alternate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--layers", options->gpt.layers, "Layers of gpt; as many as it usually has when left out")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--vocabulary", options->gpt.vocabulary,
                   "Vocabulary of gpt; as large as it usually is when left out")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--peers", options->peers, "Also measure PyTorch in Python, runs in turn");
  command->add_flag("--json", options->json, "One JSON object a line");
  command->add_flag("--overhead", options->overhead, "Costs per recorded node and per compiled call instead");
  command->add_flag("--linear", options->linear, "Compile time per node of gpt with 4 to 64 layers instead");
  command->add_flag("--scale", options->scale,
                    "Time of partitioner min_cut on networks of up to 100,000 nodes instead");
  command->add_flag("--second-size", options->second_size,
                    "Compiling gpt for four batch sizes, one behind the other, instead");
  command->add_flag("--by-hand", options->by_hand,
                    "Model chain against AVX2 intrinsics with SLEEF's functions, written by hand, instead");
  command->add_flag("--promise", options->promise,
                    "Loops whose sizes keep changing, and watched calls, over eager instead");
  command->add_flag("--budget", options->budget,
                    "Time and memory at 11 memory budgets instead, and a chart of them; partitioner min_cut");
  command->add_flag("--warm-start", options->warm_start,
                    "Compiling gpt with 12 layers of width 768, and loading it in new processes from the "
                    "folder and from a bundle, instead");
  command->add_flag("--wide", options->wide, "For child processes of this program")->group("");
  command->add_flag("--first-step", options->first_step, "For child processes of this program")->group("");
  command->callback([=] {
    BenchOptions chosen = *options;
    if (chosen.threads > 0) at::set_num_threads(chosen.threads);
    if (chosen.first_step) return print_first_step(chosen);
    if (chosen.models.empty()) chosen.models = models;
    if (chosen.backends.empty()) chosen.backends = {Options{}.backend};
    if (chosen.overhead)
      print_overhead(chosen);
    else if (chosen.linear)
      print_linear(chosen);
    else if (chosen.scale)
      print_scale(chosen);
    else if (chosen.second_size)
      print_second_size(chosen);
    else if (chosen.by_hand)
      print_by_hand(chosen);
    else if (chosen.promise)
      print_promise(chosen);
    else if (chosen.budget)
      print_budgets(chosen);
    else if (!chosen.against.empty())
      print_against(chosen);
    else if (chosen.warm_start)
      print_warm_start(chosen);
    else
      print_models(chosen);
  });
}

}  // namespace tandem::cli
