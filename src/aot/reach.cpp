#include "aot/reach.h"

#include <torch/csrc/autograd/variable.h>

#include <unordered_set>

#include "base/history.h"

namespace tandem {

std::vector<size_t> unreached_inputs(const Traced& traced, const Plan& plan) {
  const auto behind = nodes_behind(plan.tangent_sources);
  std::unordered_set<const torch::autograd::Node*> reached(behind.begin(), behind.end());
  for (const at::Tensor& source : plan.tangent_sources) reached.insert(torch::autograd::impl::gradient_edge(source).function.get());
  std::vector<size_t> found;
  for (size_t i = 0; i < plan.gradient_inputs.size(); ++i) {
    const at::Tensor& leaf = traced.tracer->inputs()[plan.gradient_inputs[i]].leaf;
    if (!reached.count(torch::autograd::impl::gradient_edge(leaf).function.get())) found.push_back(i);
  }
  return found;
}

}  // namespace tandem
