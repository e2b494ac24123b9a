#include "bench.h"
#include "measure.h"
#include "table.h"

#include <tandem/export.h>
#include <tandem/partition.h>

#include <ATen/ATen.h>

#include <iostream>

namespace tandem::cli {

namespace {

constexpr int64_t width = 16;

/// Blocks as of a transformer without attention, each with weights of its own.
Joint deep_network(int64_t blocks) {
  Tensors inputs{at::rand({width, width})};
  for (int64_t b = 0; b < blocks; ++b)
    for (int weight = 0; weight < 2; ++weight) inputs.push_back(at::rand({width, width}).requires_grad_());
  return export_joint_with_tangents(
      [](const Tensors& in) {
        at::Tensor x = in[0];
        for (size_t i = 1; i + 1 < in.size(); i += 2) {
          const at::Tensor normal = at::layer_norm(x, {width});
          x = x + at::mm(at::tanh(at::mm(normal, in[i])) * at::sigmoid(normal), in[i + 1]);
        }
        return Tensors{x.sum()};
      },
      inputs);
}

double seconds_to_partition(const Joint& joint, double budget,
                            const std::function<bool(const Graph&, const Node&)>& fuses) {
  const double start = seconds_now();
  partition_min_cut(joint, {.memory_budget = budget, .fuses = fuses});
  return seconds_now() - start;
}

}  // namespace

void print_scale(const BenchOptions& options) {
  std::vector<Row> rows{{"nodes", "budget", "for", "seconds", "us per node"}};
  for (int64_t blocks : {250, 500, 1000, 2500, 5000}) {
    const Joint joint = deep_network(blocks);
    const size_t nodes = joint.graph.nodes().size();
    for (const std::string backend : {"eager", "fuse"})
      for (double budget : {1.0, 0.5, 0.0}) {
        const double seconds = seconds_to_partition(joint, budget, fuses_of(backend));
        if (options.json)
          std::cout << Json{{"nodes", nodes},
                            {"budget", budget},
                            {"partition_for", backend},
                            {"partition_s", seconds}}
                           .dump()
                    << std::endl;
        rows.push_back({std::to_string(nodes), fixed(budget, 1), backend, fixed(seconds, 3),
                        fixed(seconds / double(nodes) * 1e6, 1)});
      }
  }
  if (!options.json) std::cout << table(rows);
}

}  // namespace tandem::cli
