/// The benchmark models as torch::nn modules; `forward` of a whole model returns its loss.
#pragma once

#include "models.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

namespace tandem::bench {

/// Memory-bound: pointwise operators and one reduction.
struct Chain : torch::nn::Module {
  Chain();
  at::Tensor forward(const at::Tensor& x);

  at::Tensor weight;
};

/// Overhead-bound: residual blocks of a normalisation, a linear layer and a gelu.
struct Mlp : torch::nn::Module {
  explicit Mlp(int64_t blocks = 16, int64_t width = 256);
  at::Tensor forward(at::Tensor x);

  std::vector<torch::nn::Linear> linears;
  std::vector<torch::nn::LayerNorm> norms;
};

/// One pre-norm transformer layer with causal attention.
struct GptBlock : torch::nn::Module {
  explicit GptBlock(const GptShape& shape);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor attend(const at::Tensor& x);
  at::Tensor drop(const at::Tensor& x) const;

  int64_t heads;
  double dropout;
  torch::nn::LayerNorm norm1, norm2;
  torch::nn::Linear qkv, project, up, down;
};

struct Gpt : torch::nn::Module {
  explicit Gpt(const GptShape& shape);
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& targets);

  double dropout;
  torch::nn::Embedding token, position;
  std::vector<std::shared_ptr<GptBlock>> blocks;
  torch::nn::LayerNorm norm;
  torch::nn::Linear head;
};

/// Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes.
struct ResidualBlock : torch::nn::Module {
  ResidualBlock(int64_t in, int64_t out, int64_t stride);
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Conv2d conv1, conv2, shortcut{nullptr};
  torch::nn::BatchNorm2d norm1, norm2, shortcut_norm{nullptr};
};

struct ResNet18 : torch::nn::Module {
  ResNet18();
  at::Tensor forward(const at::Tensor& images, const at::Tensor& labels);

  torch::nn::Conv2d stem;
  torch::nn::BatchNorm2d stem_norm;
  std::vector<std::shared_ptr<ResidualBlock>> body;
  torch::nn::Linear classifier;
};

/// A cell written out step by step: many small operators.
struct Lstm : torch::nn::Module {
  explicit Lstm(int64_t width = 128);
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Linear input, hidden;
};

/// Linear, softplus, linear.
struct SoftplusPair : torch::nn::Module {
  SoftplusPair(int64_t in, int64_t hidden, int64_t out);
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Linear first, second;
};

/// Energy and forces of atoms: the loss contains a gradient.
struct SchNet : torch::nn::Module {
  explicit SchNet(int64_t width = 64, int64_t radial = 32, int64_t layers = 3);
  at::Tensor energy(const at::Tensor& kinds, const at::Tensor& positions);
  at::Tensor forward(const at::Tensor& kinds, const at::Tensor& positions, const at::Tensor& energy_wanted,
                     const at::Tensor& forces_wanted);

  torch::nn::Embedding embedding;
  at::Tensor centres;
  std::vector<std::shared_ptr<SoftplusPair>> filters, updates;
  std::shared_ptr<SoftplusPair> readout;
};

}  // namespace tandem::bench
