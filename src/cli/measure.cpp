#include "measure.h"

#include <tandem/compile.h>

#include <ATen/ATen.h>
#include <torch/cuda.h>

#include "backends/kept_memory.h"
#include "memory.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace tandem::cli {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void synchronize(c10::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize();
}

static Options options_for(const bench::Benchmark& benchmark, Options options) {
  options.watched_calls = false;
  options.name = benchmark.name;
  options.watch = {benchmark.module};
  return options;
}

Contest::Contest(bench::Benchmark benchmark, c10::Device device, Options options)
    : benchmark_(std::move(benchmark)),
      device_(device),
      parameters_(bench::parameters(benchmark_)),
      compiled_(compile([loss = benchmark_.loss](const Tensors& inputs) { return Tensors{loss(inputs)}; },
                        options_for(benchmark_, std::move(options)))),
      compiled_loss_([compiled = compiled_](const Tensors& inputs) { return compiled(inputs)[0]; }) {}

double Contest::timed_step(const Loss& loss) {
  const double start = seconds_now();
  loss(benchmark_.inputs).backward();
  synchronize(device_);
  const double taken = seconds_now() - start;
  bench::drop_gradients(parameters_);
  return taken;
}

Tensors Contest::loss_and_gradients(const Loss& loss) {
  at::Tensor value = loss(benchmark_.inputs);
  value.backward();
  Tensors found{value.detach()};
  for (const at::Tensor& parameter : parameters_) found.push_back(parameter.grad());
  bench::drop_gradients(parameters_);
  return found;
}

double Contest::max_error(int steps) {
  double largest = 0;
  for (int step = 0; step < steps; ++step) {
    at::manual_seed(step);
    Tensors expected = loss_and_gradients(benchmark_.loss);
    at::manual_seed(step);
    Tensors found = loss_and_gradients(compiled_loss_);
    for (size_t i = 0; i < expected.size(); ++i)
      largest = std::max(largest, relative_difference(expected[i], found[i]));
  }
  return largest;
}

int64_t Contest::eager_peak_bytes() {
  return peak_bytes(device_, [&] { eager_step(); });
}

int64_t Contest::compiled_peak_bytes() {
  const KeepNoMemory each_is_counted;
  return peak_bytes(device_, [&] { compiled_step(); });
}

void alternate(Contest& contest, double seconds, StepTimes& times) {
  const double end = seconds_now() + seconds;
  for (int pair = 0; pair < 3 || seconds_now() < end; ++pair) {
    const bool eager_first = pair % 2 == 0;
    if (eager_first) times.eager.push_back(contest.eager_step());
    times.compiled.push_back(contest.compiled_step());
    if (!eager_first) times.eager.push_back(contest.eager_step());
  }
}

double relative_difference(const at::Tensor& expected, const at::Tensor& found) {
  constexpr double worst = std::numeric_limits<double>::max();
  if (!expected.defined() || !found.defined()) return expected.defined() == found.defined() ? 0 : worst;
  if (expected.sizes() != found.sizes() || expected.scalar_type() != found.scalar_type()) return worst;
  if (at::equal(expected, found)) return 0;
  const double difference = (expected - found).to(at::kDouble).abs().max().item<double>();
  const double scale =
      std::max(expected.to(at::kDouble).abs().max().item<double>(), std::numeric_limits<double>::min());
  const double relative = difference / scale;
  return std::isfinite(relative) ? relative : worst;
}

}  // namespace tandem::cli
