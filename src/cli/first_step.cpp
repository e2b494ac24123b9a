#include "bench.h"
#include "measure.h"

#include <iostream>

namespace tandem::cli {

void print_first_step(const BenchOptions& options) {
  const c10::Device device(options.device);
  const bool compiled = !options.backends.empty();
  Contest contest(options.wide ? bench::make_gpt(wide_gpt, 1, device) : bench::make_benchmark(options.models.at(0), device, options.layers), device, compiled ? options.backends[0] : Options{}.backend);
  synchronize(device);
  Json line;
  line["first_s"] = compiled ? contest.compiled_step() : contest.eager_step();
  if (compiled) {
    const Explanation explanation = contest.explain();
    line["compile_s"] = explanation.trace_seconds + explanation.compile_seconds;
    line["trace_s"] = explanation.trace_seconds;
    line["cache_state"] = explanation.cache_state;
  }
  std::cout << line.dump() << std::endl;
}

}  // namespace tandem::cli
