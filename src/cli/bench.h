/// What the kinds of benchmark share: each prints its lines to standard output.
#pragma once

#include <c10/core/Device.h>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace tandem::cli {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  std::vector<std::string> models, backends;
  std::string device = "cpu";
  int threads = 0;                          ///< 0: libtorch's own choice
  double seconds = 10;
  int64_t layers = 0;
  bool peers = false, json = false;
  bool overhead = false, linear = false, warm_start = false, first_step = false;   ///< something else than the models is measured
  bool wide = false;                        ///< of a first step: not the model, but wide_gpt
};

/// Runs the first step of one model in this process, eager (`backend` empty) or compiled, and prints how long it took as JSON: for a fresh child process.
void print_first_step(const BenchOptions& options);

/// Costs per operator and per call: recording, a compiled call, a compiled forward and backward.
void print_overhead(const BenchOptions& options);

/// Compile time per node of gpt from 4 to 64 layers.
void print_linear(const BenchOptions& options);

/// One run of PyTorch in Python on a model, for `seconds`, with the given Inductor cache folder; null values where torch.compile refuses the model.
Json run_peer(const std::string& model, const BenchOptions& options, double seconds, const std::string& cache_folder);

}  // namespace tandem::cli
