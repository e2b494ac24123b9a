#include "bench.h"
#include "measure.h"
#include "table.h"

#include <tandem/tandem.h>

#include <iostream>

namespace tandem::cli {

namespace {

constexpr int64_t batches[] = {4, 3, 2, 1};

Json size_line(const Compiled& compiled, const bench::Benchmark& gpt, int64_t batch) {
  Tensors inputs;
  for (const at::Tensor& input : gpt.inputs) inputs.push_back(input.slice(0, 0, batch));
  const uint64_t before = counters()["kernel_compiled"];
  const Explanation explanation = compiled.explain(inputs);
  return {{"batch", batch},
          {"record_s", explanation.trace_seconds},
          {"compile_s", explanation.trace_seconds + explanation.compile_seconds},
          {"kernels_compiled", counters()["kernel_compiled"] - before}};
}

}  // namespace

void print_second_size(const BenchOptions& options) {
  std::vector<Row> rows{{"batch", "recording s", "all s", "over recording", "kernels compiled"}};
  const bench::Benchmark gpt = bench::make_benchmark("gpt", c10::Device(options.device), options.gpt);
  Options how = compile_options(options, options.backends[0]);
  how.cache.enabled = false;
  const Compiled compiled = compile([&](const Tensors& in) { return Tensors{gpt.loss(in)}; }, how);
  for (int64_t batch : batches) {
    const Json line = size_line(compiled, gpt, batch);
    if (options.json) std::cout << line.dump() << std::endl;
    const double record = line["record_s"], all = line["compile_s"];
    rows.push_back({std::to_string(batch), fixed(record, 4), fixed(all, 4), fixed(all / record, 2),
                    std::to_string(line["kernels_compiled"].get<uint64_t>())});
  }
  if (!options.json) std::cout << table(rows);
}

}  // namespace tandem::cli
