/// Eager's own gradients with other rounding, which say how far compiled code's may be from them.
#pragma once

#include <tandem/graph.h>

#include <ATen/core/Generator.h>
#include <torch/csrc/autograd/function.h>

#include <map>
#include <memory>

namespace tandem::fuzz {

/// Rounds what autograd computes otherwise, at random. What a node passes on changes in its last bit or not.
/// And what arrives at a node as a sum goes through it in two parts, which are as large as the terms that it
/// is a sum of, and are added up behind it: where terms cancel each other, that loses bits.
class Shaking : public std::enable_shared_from_this<Shaking> {
 public:
  explicit Shaking(uint64_t seed);
  /// The nodes behind `roots`, from now on.
  void shake(const Tensors& roots);

 private:
  friend struct Shake;
  using Slot = std::pair<const torch::autograd::Node*, uint32_t>;

  torch::autograd::variable_list in_parts(torch::autograd::Node& node,
                                          const torch::autograd::variable_list& arrived,
                                          const torch::autograd::variable_list& passed_on);
  at::Tensor part_of(const at::Tensor& gradient, const Slot& slot);
  void note_terms(const torch::autograd::Node& node, const torch::autograd::variable_list& passed_on);

  at::Generator numbers_;
  std::map<Slot, at::Tensor> terms_;  ///< of what arrived there so far, the sum of the absolute values
};

}  // namespace tandem::fuzz
