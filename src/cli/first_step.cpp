#include "bench.h"
#include "measure.h"
#include "process.h"

#include <tandem/error.h>

#include <ATen/Parallel.h>

#include <iostream>

namespace tandem::cli {

namespace {

bench::Benchmark chosen_benchmark(const BenchOptions& options, c10::Device device) {
  if (!options.wide) return bench::make_benchmark(options.models.at(0), device, options.gpt);
  bench::GptShape shape = wide_gpt;
  if (options.gpt.layers > 0) shape.layers = options.gpt.layers;
  return bench::make_gpt(shape, 1, device);
}

}  // namespace

Json first_step(const BenchOptions& options, const std::string& model, const std::string& backend,
                const std::filesystem::path& cache) {
  std::vector<std::string> command{this_program(),
                                   "bench",
                                   "--first-step",
                                   "--model",
                                   model,
                                   "--device",
                                   options.device,
                                   "--threads",
                                   std::to_string(at::get_num_threads()),
                                   "--layers",
                                   std::to_string(options.gpt.layers),
                                   "--vocabulary",
                                   std::to_string(options.gpt.vocabulary)};
  command.insert(command.end(), {"--partitioner", options.partitioner});
  if (!options.partition_for.empty())
    command.insert(command.end(), {"--partition-for", options.partition_for});
  if (!backend.empty()) command.insert(command.end(), {"--backend", backend});
  if (options.warm_start) command.push_back("--wide");
  Finished child = run_program(
      command, {{"TANDEM_CACHE", "on"}, {"TANDEM_REMOTE_CACHE", ""}, {"TANDEM_CACHE_DIR", cache}});
  if (child.status != 0)
    throw Error("the first step of " + model + " in a process of its own ended with status " +
                std::to_string(child.status));
  return Json::parse(child.output);
}

void print_first_step(const BenchOptions& options) {
  const c10::Device device(options.device);
  const bool compiled = !options.backends.empty();
  Contest contest(chosen_benchmark(options, device), device,
                  compile_options(options, compiled ? options.backends[0] : Options{}.backend));
  synchronize(device);
  Json line;
  line["first_s"] = compiled ? contest.compiled_step() : contest.eager_step();
  line["counters"] = counters();
  if (compiled) {
    const Explanation explanation = contest.explain();
    line["compile_s"] = explanation.trace_seconds + explanation.compile_seconds;
    line["trace_s"] = explanation.trace_seconds;
    line["cache_state"] = explanation.cache_state;
  }
  std::cout << line.dump() << std::endl;
}

}  // namespace tandem::cli
