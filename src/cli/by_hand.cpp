#include "bench.h"
#include "chain_by_hand.h"
#include "measure.h"
#include "table.h"

#include <tandem/error.h>

#include <iostream>

namespace tandem::cli {

namespace {

constexpr int turns = 5, untimed = 3;

double by_hand(const at::Tensor& x, const at::Tensor& weight) {
  const double start = seconds_now();
  bench::chain_by_hand(x, weight);
  return seconds_now() - start;
}

/// Of the written step's loss and gradient from eager's; a wrong one is not worth measuring.
double error_by_hand(const bench::Benchmark& chain, const at::Tensor& weight) {
  const at::Tensor loss = chain.loss(chain.inputs);
  loss.backward();
  const bench::ChainStep written = bench::chain_by_hand(chain.inputs[0], weight);
  const double error = std::max(relative_difference(loss.detach(), written.loss),
                                relative_difference(weight.grad(), written.gradient));
  bench::drop_gradients(bench::parameters(chain));
  return error;
}

}  // namespace

void print_by_hand(const BenchOptions& options) {
  if (!bench::can_run_by_hand()) throw Error("what is written by hand needs a processor with AVX2");
  const bench::Benchmark chain = bench::make_benchmark("chain", c10::kCPU);
  const at::Tensor weight = bench::parameters(chain)[0];
  Contest contest(chain, c10::kCPU, compile_options(options, options.backends[0]));
  for (int i = 0; i < untimed; ++i) contest.compiled_step(), by_hand(chain.inputs[0], weight.detach());
  std::vector<double> ratios, compiled, written, eager;
  for (int turn = 0; turn < turns; ++turn) {
    std::vector<double> of_compiled, of_written;
    const double end = seconds_now() + options.seconds / turns;
    eager.push_back(contest.eager_step());
    for (int pair = 0; pair < 3 || seconds_now() < end; ++pair) {
      of_compiled.push_back(contest.compiled_step());
      of_written.push_back(by_hand(chain.inputs[0], weight.detach()));
    }
    compiled.push_back(median(of_compiled) * 1e3);
    written.push_back(median(of_written) * 1e3);
    ratios.push_back(compiled.back() / written.back());
  }
  const Json line = {{"model", "chain"},
                     {"backend", options.backends[0]},
                     {"eager_ms", median(eager) * 1e3},
                     {"tandem_ms", median(compiled)},
                     {"by_hand_ms", median(written)},
                     {"over_by_hand", median(ratios)},
                     {"error_by_hand", error_by_hand(chain, weight)}};
  if (options.json) {
    std::cout << line.dump() << std::endl;
    return;
  }
  std::cout << table({{"backend", "eager ms", "tandem ms", "by hand ms", "over by hand"},
                      {options.backends[0], fixed(line["eager_ms"], 1), fixed(line["tandem_ms"], 1),
                       fixed(line["by_hand_ms"], 1), fixed(line["over_by_hand"], 3)}});
}

}  // namespace tandem::cli
