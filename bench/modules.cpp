#include "modules.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <numbers>

namespace tandem::bench {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Embedding;
using torch::nn::LayerNorm;
using torch::nn::LayerNormOptions;
using torch::nn::Linear;
using torch::nn::LinearOptions;

namespace {

LayerNorm layer_norm(int64_t width) { return LayerNorm(LayerNormOptions({width})); }

Conv2d convolution(int64_t in, int64_t out, int64_t size, int64_t stride, int64_t padding) {
  return Conv2d(Conv2dOptions(in, out, size).stride(stride).padding(padding).bias(false));
}

std::string numbered(const char* name, size_t i) { return name + std::to_string(i); }

}  // namespace

Chain::Chain() : weight(register_parameter("weight", torch::rand({1024}))) {}

at::Tensor Chain::forward(const at::Tensor& x) {
  at::Tensor y = (x * weight).sigmoid() + x.tanh() * 0.5;
  y = at::silu(y + x) * (-y * y).exp();
  y = at::gelu(y) - x.relu();
  return (y * y).sum();
}

Mlp::Mlp(int64_t blocks, int64_t width) {
  for (int64_t i = 0; i < blocks; ++i) {
    linears.push_back(register_module(numbered("linear", i), Linear(width, width)));
    norms.push_back(register_module(numbered("norm", i), layer_norm(width)));
  }
}

at::Tensor Mlp::forward(at::Tensor x) {
  for (size_t i = 0; i < linears.size(); ++i) x = x + at::gelu(linears[i](norms[i](x)));
  return (x * x).mean();
}

GptBlock::GptBlock(const GptShape& shape)
    : heads(shape.heads),
      dropout(shape.dropout),
      norm1(register_module("norm1", layer_norm(shape.width))),
      norm2(register_module("norm2", layer_norm(shape.width))),
      qkv(register_module("qkv", Linear(shape.width, 3 * shape.width))),
      project(register_module("project", Linear(shape.width, shape.width))),
      up(register_module("up", Linear(shape.width, 4 * shape.width))),
      down(register_module("down", Linear(4 * shape.width, shape.width))) {}

at::Tensor GptBlock::drop(const at::Tensor& x) const {
  return dropout > 0 ? at::dropout(x, dropout, is_training()) : x;
}

at::Tensor GptBlock::attend(const at::Tensor& x) {
  const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
  auto parts = qkv(x).view({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
  at::Tensor attended =
      at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, /*is_causal=*/true);
  return project(attended.transpose(1, 2).reshape({batch, length, width}));
}

at::Tensor GptBlock::forward(const at::Tensor& x) {
  at::Tensor y = x + drop(attend(norm1(x)));
  return y + drop(down(at::gelu(up(norm2(y)))));
}

Gpt::Gpt(const GptShape& shape)
    : dropout(shape.dropout),
      token(register_module("token", Embedding(shape.vocabulary, shape.width))),
      position(register_module("position", Embedding(shape.context, shape.width))),
      norm(nullptr),
      head(nullptr) {
  for (int64_t i = 0; i < shape.layers; ++i)
    blocks.push_back(register_module(numbered("block", i), std::make_shared<GptBlock>(shape)));
  norm = register_module("norm", layer_norm(shape.width));
  head = register_module("head", Linear(LinearOptions(shape.width, shape.vocabulary).bias(false)));
}

at::Tensor Gpt::forward(const at::Tensor& tokens, const at::Tensor& targets) {
  at::Tensor x =
      token(tokens) +
      position(torch::arange(tokens.size(1), torch::TensorOptions(torch::kLong).device(tokens.device())));
  if (dropout > 0) x = at::dropout(x, dropout, is_training());
  for (auto& block : blocks) x = block->forward(x);
  at::Tensor logits = head(norm(x));
  return at::cross_entropy_loss(logits.view({-1, logits.size(-1)}).to(at::kFloat), targets.view(-1));
}

ResidualBlock::ResidualBlock(int64_t in, int64_t out, int64_t stride)
    : conv1(register_module("conv1", convolution(in, out, 3, stride, 1))),
      conv2(register_module("conv2", convolution(out, out, 3, 1, 1))),
      norm1(register_module("norm1", BatchNorm2d(out))),
      norm2(register_module("norm2", BatchNorm2d(out))) {
  if (stride == 1 && in == out) return;
  shortcut = register_module("shortcut", convolution(in, out, 1, stride, 0));
  shortcut_norm = register_module("shortcut_norm", BatchNorm2d(out));
}

at::Tensor ResidualBlock::forward(const at::Tensor& x) {
  at::Tensor y = norm2(conv2(norm1(conv1(x)).relu()));
  return (y + (shortcut ? shortcut_norm(shortcut(x)) : x)).relu();
}

ResNet18::ResNet18()
    : stem(register_module("stem", convolution(3, 64, 7, 2, 3))),
      stem_norm(register_module("stem_norm", BatchNorm2d(64))),
      classifier(nullptr) {
  int64_t in = 64;
  for (int64_t out : {64, 128, 256, 512}) {
    body.push_back(register_module(numbered("block", body.size()),
                                   std::make_shared<ResidualBlock>(in, out, in == out ? 1 : 2)));
    body.push_back(
        register_module(numbered("block", body.size()), std::make_shared<ResidualBlock>(out, out, 1)));
    in = out;
  }
  classifier = register_module("classifier", Linear(512, 1000));
}

at::Tensor ResNet18::forward(const at::Tensor& images, const at::Tensor& labels) {
  at::Tensor x = at::max_pool2d(stem_norm(stem(images)).relu(), 3, 2, 1);
  for (auto& block : body) x = block->forward(x);
  return at::cross_entropy_loss(classifier(x.mean({2, 3})).to(at::kFloat), labels);
}

Lstm::Lstm(int64_t width)
    : input(register_module("input", Linear(width, 4 * width))),
      hidden(register_module("hidden", Linear(width, 4 * width))) {}

at::Tensor Lstm::forward(const at::Tensor& x) {
  at::Tensor h = torch::zeros_like(x[0]), c = h;
  for (int64_t t = 0; t < x.size(0); ++t) {
    auto gates = (input(x[t]) + hidden(h)).chunk(4, 1);
    c = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
    h = gates[3].sigmoid() * c.tanh();
  }
  return (h * h).mean();
}

SoftplusPair::SoftplusPair(int64_t in, int64_t hidden, int64_t out)
    : first(register_module("first", Linear(in, hidden))),
      second(register_module("second", Linear(hidden, out))) {}

at::Tensor SoftplusPair::forward(const at::Tensor& x) { return second(at::softplus(first(x))); }

SchNet::SchNet(int64_t width, int64_t radial, int64_t layers)
    : embedding(register_module("embedding", Embedding(20, width))),
      centres(register_buffer("centres", at::linspace(0, 6, radial))) {
  for (int64_t i = 0; i < layers; ++i) {
    filters.push_back(
        register_module(numbered("filter", i), std::make_shared<SoftplusPair>(radial, width, width)));
    updates.push_back(
        register_module(numbered("update", i), std::make_shared<SoftplusPair>(width, width, width)));
  }
  readout = register_module("readout", std::make_shared<SoftplusPair>(width, width / 2, 1));
}

at::Tensor SchNet::energy(const at::Tensor& kinds, const at::Tensor& positions) {
  at::Tensor apart = positions.unsqueeze(0) - positions.unsqueeze(1);
  at::Tensor distance = (apart * apart).sum(-1).add(1e-6).sqrt();
  at::Tensor basis = (-10.0 * (distance.unsqueeze(-1) - centres).pow(2)).exp();
  at::Tensor cutoff = 0.5 * ((distance.clamp(std::nullopt, 6.0) * (std::numbers::pi / 6)).cos() + 1);
  at::Tensor x = embedding(kinds);
  for (size_t i = 0; i < filters.size(); ++i) {
    at::Tensor messages = filters[i]->forward(basis) * cutoff.unsqueeze(-1) * x.unsqueeze(0);
    x = x + updates[i]->forward(messages.sum(1));
  }
  return readout->forward(x).sum();
}

at::Tensor SchNet::forward(const at::Tensor& kinds, const at::Tensor& positions,
                           const at::Tensor& energy_wanted, const at::Tensor& forces_wanted) {
  at::Tensor moved = positions.detach().requires_grad_();
  at::Tensor found = energy(kinds, moved);
  at::Tensor forces = -torch::autograd::grad({found}, {moved}, {}, std::nullopt, /*create_graph=*/true)[0];
  return (found - energy_wanted).pow(2) + at::mse_loss(forces, forces_wanted);
}

}  // namespace tandem::bench
