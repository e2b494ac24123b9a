#include "shapes/rules/helpers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <mutex>

namespace tandem::rules {
namespace {

/// What the layer's arguments say of its size: steps, batch, input and hidden features, and the flags.
using Geometry = std::vector<int64_t>;

Geometry geometry(const ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  Geometry g{int64_t(input.scalar_type()), input.size(0), input.size(1), input.size(2)};
  for (size_t i : {9, 10, 11}) g.push_back(call.integer(i));
  for (size_t i : {7, 12, 13, 14, 15}) g.push_back(call.boolean(i));
  for (int64_t size : call.integers(8)) g.push_back(size);
  return g;
}

/// The size of the workspace is oneDNN's secret: it is asked once for each geometry, by running the layer on
/// zeros.
int64_t ask_workspace(const ShapeCall& call) {
  at::AutoGradMode training(true);
  auto zeros = [&](size_t i) { return at::zeros(call.tensor(i).sizes(), call.tensor(i).scalar_type()); };
  auto [output, hidden, cell, workspace] = at::mkldnn_rnn_layer(
      zeros(0), zeros(1), zeros(2), zeros(3), zeros(4), zeros(5), zeros(6), call.boolean(7), call.integers(8),
      call.integer(9), call.integer(10), call.integer(11), call.boolean(12), call.boolean(13),
      call.boolean(14), call.boolean(15));
  return workspace.numel();
}

int64_t workspace_bytes(const ShapeCall& call) {
  static std::mutex mutex;
  static auto* known = new std::map<Geometry, int64_t>;
  Geometry key = geometry(call);
  std::lock_guard lock(mutex);
  auto found = known->find(key);
  if (found == known->end()) found = known->emplace(key, ask_workspace(call)).first;
  return found->second;
}

void layer(ShapeCall& call) {
  const at::Tensor& input = call.tensor(0);
  call.give(make_meta({input.size(0), input.size(1), call.integer(10)}, input.scalar_type()));
  call.give(contiguous_like(call.tensor(5)));
  call.give(contiguous_like(call.tensor(6)));
  // The kernel asks the grad mode, not its own argument, whether there will be a backward.
  call.give(at::GradMode::is_enabled() ? make_meta({workspace_bytes(call)}, at::kByte) : at::Tensor());
}

/// Gradients are in single precision whatever the layer was in.
void layer_backward(ShapeCall& call) {
  for (size_t i = 0; i < 7; ++i) call.give(make_meta(call.tensor(i).sizes(), at::kFloat));
}

constexpr Row recurrent_rows[] = {
    {"aten::mkldnn_rnn_layer", layer},
    {"aten::mkldnn_rnn_layer_backward", layer_backward},
};

}  // namespace

std::span<const Row> recurrent() { return recurrent_rows; }

}  // namespace tandem::rules
