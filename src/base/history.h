/// The autograd graph behind tensors, as we look at it.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace tandem {

/// Every node that a backward of these tensors could reach, each once; they live as long as the tensors' graph does.
std::vector<torch::autograd::Node*> nodes_behind(const std::vector<at::Tensor>& tensors);

}  // namespace tandem
