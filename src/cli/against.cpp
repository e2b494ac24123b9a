#include "bench.h"
#include "measure.h"
#include "table.h"

#include <algorithm>
#include <array>
#include <iostream>

namespace tandem::cli {

namespace {

constexpr int duels = 5, untimed_steps = 3;

/// The same model, compiled once with each of two partitioners.
class Duel {
 public:
  Duel(const std::string& model, const BenchOptions& options)
      : first_(contest(model, options, options.partitioner)),
        second_(contest(model, options, options.against)) {
    for (int i = 0; i < untimed_steps; ++i) first_.compiled_step(), second_.compiled_step();
  }

  /// Steps of both in turn for about so long, as medians in seconds.
  std::array<double, 2> run(double seconds) {
    std::vector<double> of_first, of_second;
    const double end = seconds_now() + seconds;
    for (int pair = 0; pair < 3 || seconds_now() < end; ++pair) {
      if (pair % 2 == 0) of_first.push_back(first_.compiled_step());
      of_second.push_back(second_.compiled_step());
      if (pair % 2 == 1) of_first.push_back(first_.compiled_step());
    }
    return {median(of_first), median(of_second)};
  }

  std::array<int64_t, 2> saved_bytes() const {
    return {first_.explain().saved_bytes, second_.explain().saved_bytes};
  }

 private:
  static Contest contest(const std::string& model, BenchOptions options, const std::string& partitioner) {
    const c10::Device device(options.device);
    options.partitioner = partitioner;
    return Contest(bench::make_benchmark(model, device, options.gpt), device,
                   compile_options(options, options.backends.at(0)));
  }

  Contest first_, second_;
};

Json duel_line(const std::string& model, const BenchOptions& options) {
  std::vector<double> speeds, milliseconds;
  std::array<int64_t, 2> saved{};
  for (int i = 0; i < duels; ++i) {
    Duel duel(model, options);
    const auto [first, second] = duel.run(options.seconds / duels);
    speeds.push_back(second / first);
    milliseconds.push_back(first * 1e3);
    saved = duel.saved_bytes();
  }
  return {{"model", model},
          {"partitioner", options.partitioner},
          {"against", options.against},
          {"ms", median(milliseconds)},
          {"speedup", median(speeds)},
          {"least_speedup", *std::min_element(speeds.begin(), speeds.end())},
          {"largest_speedup", *std::max_element(speeds.begin(), speeds.end())},
          {"saved_bytes", saved[0]},
          {"against_saved_bytes", saved[1]}};
}

}  // namespace

void print_against(const BenchOptions& options) {
  std::vector<Row> rows{{"model", "ms", "speed over " + options.against, "least", "largest", "saved",
                         options.against + " saved"}};
  for (const std::string& model : options.models) {
    const Json line = duel_line(model, options);
    if (options.json) std::cout << line.dump() << std::endl;
    rows.push_back({model, fixed(line["ms"], 2), fixed(line["speedup"], 3), fixed(line["least_speedup"], 3),
                    fixed(line["largest_speedup"], 3), megabytes(line["saved_bytes"]),
                    megabytes(line["against_saved_bytes"])});
  }
  if (!options.json) std::cout << table(rows);
}

}  // namespace tandem::cli
