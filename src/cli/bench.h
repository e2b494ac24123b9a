/// What the kinds of benchmark share: each prints its lines to standard output.
#pragma once

#include "models.h"

#include <tandem/options.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tandem::cli {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  std::vector<std::string> models, backends;
  std::string partitioner = Options{}.partitioner;
  std::string partition_for;  ///< the backend for which graphs are split; empty: the one that runs them
  std::string against;        ///< the partitioner that another one is measured against
  std::string device = "cpu";
  int threads = 0;  ///< 0: libtorch's own choice
  double seconds = 10;
  bench::GptSize gpt;
  bool peers = false, json = false;
  /// something else than the models is measured
  bool overhead = false, linear = false, promise = false, warm_start = false, first_step = false,
       budget = false, scale = false, second_size = false, by_hand = false;
  bool wide = false;  ///< of a first step: not the model, but wide_gpt
};

/// The first step of a model in a process of its own, with a cache in this folder: what print_first_step
/// prints there. Throws Error when the child fails.
Json first_step(const BenchOptions& options, const std::string& model, const std::string& backend,
                const std::filesystem::path& cache);

/// Runs the first step of one model in this process, eager (`backend` empty) or compiled, and prints how long
/// it took as JSON: for a fresh child process.
void print_first_step(const BenchOptions& options);

/// Costs per operator and per call: recording, a compiled call, a compiled forward and backward.
void print_overhead(const BenchOptions& options);

/// What compiling the gpt of print_overhead takes, and what loading it does: from the folder that the compile
/// left, and from a bundle imported into an empty one.
void print_warm_start(const BenchOptions& options);

/// What keeping the promise costs: training loops whose sizes keep changing, and calls that are watched, over
/// eager.
void print_promise(const BenchOptions& options);

/// Compile time per node of gpt from 4 to 64 layers.
void print_linear(const BenchOptions& options);

/// What another batch size of gpt takes, when the first was compiled.
void print_second_size(const BenchOptions& options);
/// Steps of chain against the same step written by hand, in turn.
void print_by_hand(const BenchOptions& options);
/// Time that min_cut takes for ever deeper networks, at budgets and for backends that fuse or do not.
void print_scale(const BenchOptions& options);

/// Time and memory of the models at 11 memory budgets, with a chart of them.
void print_budgets(const BenchOptions& options);

/// Steps of the models, split by one partitioner and by another, in turn: medians over five compiles of each.
void print_against(const BenchOptions& options);

/// What this backend says it fuses; `fuse` is known before it exists.
std::function<bool(const Graph&, const Node&)> fuses_of(const std::string& backend);

/// The options that a model is compiled with.
Options compile_options(const BenchOptions& options, const std::string& backend);

/// One run of PyTorch in Python on a model, for `seconds`, with the given Inductor cache folder; null values
/// where torch.compile refuses the model.
Json run_peer(const std::string& model, const BenchOptions& options, double seconds,
              const std::string& cache_folder);

}  // namespace tandem::cli
