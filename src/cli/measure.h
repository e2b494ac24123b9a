/// Times and memory of training steps, eager and compiled.
#pragma once

#include "models.h"

#include <tandem/compiled.h>
#include <tandem/options.h>

#include <optional>

namespace tandem::cli {

/// What recording and loading are measured with.
inline constexpr bench::GptShape wide_gpt{
    .layers = 12, .width = 768, .heads = 12, .vocabulary = 1000, .context = 128};

double seconds_now();
double median(std::vector<double> values);
/// Returns once everything submitted to the device is done.
void synchronize(c10::Device device);

/// One benchmark as it is and compiled, on the same parameters. A step is forward, backward and gradients
/// dropped.
class Contest {
 public:
  /// Compiled with these options; name, watched module and watched calls are its own.
  Contest(bench::Benchmark benchmark, c10::Device device, Options options);

  double eager_step() { return timed_step(benchmark_.loss); }
  double compiled_step() { return timed_step(compiled_loss_); }

  /// Largest relative difference of loss and gradients over `steps` steps with equal seeds; 0: bit-equal.
  double max_error(int steps);
  int64_t eager_peak_bytes();
  int64_t compiled_peak_bytes();
  Explanation explain() const { return compiled_.explain(benchmark_.inputs); }

 private:
  using Loss = std::function<at::Tensor(const Tensors&)>;
  double timed_step(const Loss& loss);
  /// The loss, then the gradients of all parameters (undefined where there is none).
  Tensors loss_and_gradients(const Loss& loss);

  bench::Benchmark benchmark_;
  c10::Device device_;
  Tensors parameters_;
  Compiled compiled_;
  Loss compiled_loss_;
};

/// Step times of both sides.
struct StepTimes {
  std::vector<double> eager, compiled;
};

/// Steps in turn for about `seconds`, at least three of each; who goes first changes from pair to pair.
void alternate(Contest& contest, double seconds, StepTimes& times);

/// |a - b| at its largest, over |a| at its largest; 0 only when the two are equal bit by bit in value, and
/// the largest double where only one is finite or there.
double relative_difference(const at::Tensor& expected, const at::Tensor& found);

}  // namespace tandem::cli
