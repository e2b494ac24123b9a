#include "bench.h"
#include "curves.h"
#include "measure.h"
#include "table.h"

#include <tandem/backend.h>
#include <tandem/error.h>
#include <tandem/partition.h>

#include <ATen/Parallel.h>

#include <fstream>
#include <iostream>

#include "ops/facts.h"

namespace tandem::cli {

namespace {

constexpr int budgets = 11, first_steps = 2;

Json budget_line(const std::string& model, double budget, const BenchOptions& options) {
  const c10::Device device(options.device);
  Options compile = compile_options(options, options.backends.at(0));
  compile.memory_budget = budget;
  Contest contest(bench::make_benchmark(model, device, options.gpt), device, compile);
  for (int i = 0; i < first_steps; ++i) contest.eager_step(), contest.compiled_step();
  StepTimes times;
  alternate(contest, options.seconds / budgets, times);
  const Explanation explanation = contest.explain();
  return {{"model", model},
          {"device", options.device},
          {"backend", options.backends.at(0)},
          {"budget", budget},
          {"ms", median(times.compiled) * 1e3},
          {"eager_ms", median(times.eager) * 1e3},
          {"max_error", contest.max_error(2)},
          {"peak_bytes", contest.compiled_peak_bytes()},
          {"eager_peak_bytes", contest.eager_peak_bytes()},
          {"predicted_peak_bytes", explanation.predicted_peak_bytes},
          {"saved_bytes", explanation.saved_bytes},
          {"eager_saved_bytes", explanation.eager_saved_bytes}};
}

double part(const Json& line, const char* of, const char* whole) {
  return line[of].get<double>() / std::max(1.0, line[whole].get<double>());
}

/// Of one model: time over eager's against peak over eager's, one point a budget.
void draw_front(const std::string& model, const std::vector<Json>& lines) {
  Curve curve{"budgets 1 to 0", "#7a1f3d", 2, {}}, eager{"eager", "#8ecae6", 6, {1}, {1}};
  for (const Json& line : lines) {
    curve.places.push_back(part(line, "peak_bytes", "eager_peak_bytes"));
    curve.values.push_back(part(line, "ms", "eager_ms"));
  }
  const std::filesystem::path folder = "out", svg = folder / ("budget_" + model + ".svg");
  std::filesystem::create_directories(folder);
  std::ofstream file(svg);
  file << to_svg({model + ": time against memory",
                  "peak of a step, over eager's",
                  "time of a step, over eager's",
                  {eager, curve}});
  file.close();
  if (!file) throw Error(svg.string() + " cannot be written; run this where a folder out/ may be made");
  const std::filesystem::path png = std::filesystem::path(svg).replace_extension(".png");
  const std::string message = convert_to_png(svg, png);
  std::cerr << (message.empty() ? "drawn: " + svg.string() + " and " + png.string() : message) << "\n";
}

}  // namespace

/// Until there is such a backend, `fuse` is taken to compute in loops what the table of operators says can
/// be.
std::function<bool(const Graph&, const Node&)> fuses_of(const std::string& backend) {
  const std::vector<std::string> known = backends();
  if (backend == "fuse" && std::find(known.begin(), known.end(), backend) == known.end())
    return [](const Graph&, const Node& node) {
      return facts(node.op).fusible || facts(node.op).kind == Kind::Normalization;
    };
  return [asked = find_backend(backend)](const Graph& graph, const Node& node) {
    return asked->fuses(graph, node);
  };
}

Options compile_options(const BenchOptions& options, const std::string& backend) {
  Options compile{.backend = backend, .partitioner = options.partitioner};
  if (!options.partition_for.empty()) {
    const Partitioner how = find_partitioner(options.partitioner);
    compile.partition_fn = Partitioner(
        [fuses = fuses_of(options.partition_for), how](const Joint& joint, PartitionContext context) {
          context.fuses = fuses;
          return how(joint, context);
        },
        options.partitioner + " for " + options.partition_for, "1");
    compile.partition_fn.takes_narrow_forms = how.takes_narrow_forms;
  }
  return compile;
}

void print_budgets(const BenchOptions& given) {
  BenchOptions options = given;
  options.partitioner = "min_cut";
  std::vector<Row> rows{{"model", "budget", "ms", "of eager's", "max error", "saved", "of eager's", "peak",
                         "of eager's", "predicted"}};
  for (const std::string& model : options.models) {
    std::vector<Json> lines;
    for (int i = 0; i < budgets; ++i) {
      const double budget = 1 - double(i) / (budgets - 1);
      lines.push_back(budget_line(model, budget, options));
      const Json& line = lines.back();
      if (options.json) std::cout << line.dump() << std::endl;
      rows.push_back({model, fixed(budget, 1), fixed(line["ms"], 2), factor(part(line, "ms", "eager_ms")),
                      fixed(line["max_error"], 6), megabytes(line["saved_bytes"]),
                      factor(part(line, "saved_bytes", "eager_saved_bytes")), megabytes(line["peak_bytes"]),
                      factor(part(line, "peak_bytes", "eager_peak_bytes")),
                      megabytes(line["predicted_peak_bytes"])});
    }
    draw_front(model, lines);
  }
  if (!options.json) std::cout << table(rows);
}

}  // namespace tandem::cli
