#include "bench.h"
#include "measure.h"
#include "table.h"

#include <tandem/compile.h>

#include <ATen/ATen.h>

#include <fstream>
#include <iostream>

#include <unistd.h>

namespace tandem::cli {

namespace {

constexpr int loops = 5;

/// Lengths of the steps of a training loop.
std::vector<int64_t> lengths(size_t different, size_t steps) {
  std::vector<int64_t> all;
  for (size_t step = 0; step < steps; ++step)
    all.push_back(1 + int64_t(step < different ? step : (step * 37) % different));
  return all;
}

double bytes_in_memory() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * double(sysconf(_SC_PAGESIZE));
}

struct Loop {
  double seconds = 0, bytes = 0;
};

Loop train_on(const bench::Benchmark& gpt, const Callable& loss, const std::vector<int64_t>& lengths) {
  const Tensors parameters = bench::parameters(gpt);
  const double start = seconds_now();
  for (int64_t length : lengths) {
    Tensors inputs;
    for (const at::Tensor& input : gpt.inputs) inputs.push_back(input.slice(1, 0, length).contiguous());
    loss(inputs)[0].backward();
    bench::drop_gradients(parameters);
  }
  return {seconds_now() - start, bytes_in_memory()};
}

/// Compiled over eager, both in turn, each compiled loop from its first call on.
Json changing_sizes(const bench::Benchmark& gpt, const std::vector<int64_t>& lengths,
                    const std::string& backend) {
  const Callable loss = [&](const Tensors& in) { return Tensors{gpt.loss(in)}; };
  std::vector<double> time, memory;
  train_on(gpt, loss, lengths);
  for (int round = 0; round < loops; ++round) {
    const Loop eager = train_on(gpt, loss, lengths);
    const Compiled fast =
        compile(loss, {.backend = backend, .watch = {gpt.module}, .cache = {.enabled = false}});
    const Loop compiled = train_on(gpt, [&](const Tensors& in) { return fast(in); }, lengths);
    time.push_back(compiled.seconds / eager.seconds);
    memory.push_back(compiled.bytes / eager.bytes);
  }
  return {{"steps", lengths.size()}, {"time", median(time)}, {"memory", median(memory)}};
}

/// A call that is compared with its record over an eager one: the forward alone, as watched calls watch it.
double watched_call(const bench::Benchmark& gpt, const std::string& backend) {
  const Callable loss = [&](const Tensors& in) { return Tensors{gpt.loss(in)}; };
  std::vector<double> ratios;
  for (int round = 0; round < 9; ++round) {
    const Compiled fast =
        compile(loss, {.backend = backend, .watch = {gpt.module}, .cache = {.enabled = false}});
    fast(gpt.inputs);
    double start = seconds_now();
    loss(gpt.inputs);
    const double eager = seconds_now() - start;
    start = seconds_now();
    fast(gpt.inputs);  // the second call of a signature
    ratios.push_back((seconds_now() - start) / eager);
  }
  return median(ratios);
}

}  // namespace

void print_promise(const BenchOptions& options) {
  const c10::Device device(options.device);
  const bench::GptShape shape{.layers = 4, .width = 64, .heads = 4, .vocabulary = 1000, .context = 300};
  const bench::Benchmark gpt = bench::make_gpt(shape, 1, device);
  const Json every = changing_sizes(gpt, lengths(300, 300), options.backends[0]),
             most = changing_sizes(gpt, lengths(117, 150), options.backends[0]),
             few = changing_sizes(gpt, lengths(8, 300), options.backends[0]);
  const double watched = watched_call(gpt, options.backends[0]);
  if (options.json) {
    std::cout << Json{{"sizes_300_of_300", every},
                      {"sizes_117_of_150", most},
                      {"sizes_8_of_300", few},
                      {"watched_call", watched}}
                     .dump()
              << std::endl;
    return;
  }
  auto row = [](const char* what, const Json& loop) {
    return Row{what, factor(loop["time"]), factor(loop["memory"])};
  };
  std::cout << table({{"over eager", "time", "memory"},
                      row("300 sizes in 300 steps", every),
                      row("117 sizes in 150 steps", most),
                      row("8 sizes in 300 steps", few),
                      {"a watched call", factor(watched), "-"}});
}

}  // namespace tandem::cli
