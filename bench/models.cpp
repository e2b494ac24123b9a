#include "models.h"

#include "modules.h"

#include <tandem/error.h>

#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <map>

namespace tandem::bench {

namespace {

/// How a model and its inputs arrive on the device: floating-point parameters, buffers and inputs in `dtype`,
/// 4-d ones in `format`.
struct Placement {
  c10::Device device = c10::kCPU;
  at::ScalarType dtype = at::kFloat;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;

  at::Tensor operator()(const at::Tensor& tensor) const {
    at::Tensor placed = tensor.is_floating_point() ? tensor.to(device, dtype) : tensor.to(device);
    return placed.dim() == 4 ? placed.contiguous(format) : placed;
  }
};

template <class Impl, size_t... I>
Benchmark bind(std::string name, std::shared_ptr<Impl> model, std::array<at::Tensor, sizeof...(I)> inputs,
               std::index_sequence<I...>) {
  return {std::move(name), model, Tensors(inputs.begin(), inputs.end()),
          [model](const Tensors& in) { return model->forward(in[I]...); }};
}

template <class Impl, size_t count>
Benchmark place(std::string name, std::shared_ptr<Impl> model, std::array<at::Tensor, count> inputs,
                const Placement& placement) {
  for (at::Tensor& parameter : model->parameters()) parameter.set_data(placement(parameter.data()));
  for (at::Tensor& buffer : model->buffers()) buffer.set_data(placement(buffer));
  for (at::Tensor& input : inputs) input = placement(input);
  model->train();
  return bind(std::move(name), std::move(model), std::move(inputs), std::make_index_sequence<count>{});
}

at::Tensor integers(int64_t below, at::IntArrayRef sizes) {
  return torch::randint(below, sizes, torch::kLong);
}

Benchmark make_chain(c10::Device device, GptSize) {
  return place("chain", std::make_shared<Chain>(),
               std::array{torch::randn({device.is_cuda() ? 65536 : 8192, 1024})}, {device});
}

Benchmark make_mlp(c10::Device device, GptSize) {
  return place("mlp", std::make_shared<Mlp>(), std::array{torch::randn({64, 256})}, {device});
}

Benchmark place_gpt(const GptShape& shape, int64_t batch, const Placement& placement) {
  auto model = std::make_shared<Gpt>(shape);
  at::Tensor tokens = integers(shape.vocabulary, {batch, shape.context});
  at::Tensor targets = integers(shape.vocabulary, {batch, shape.context});
  return place("gpt", model, std::array{tokens, targets}, placement);
}

Benchmark make_default_gpt(c10::Device device, GptSize size) {
  GptShape shape = device.is_cuda() ? GptShape{12, 768, 12, 50304, 512} : GptShape{4, 256, 4, 8192, 128};
  if (size.layers > 0) shape.layers = size.layers;
  if (size.vocabulary > 0) shape.vocabulary = size.vocabulary;
  return place_gpt(shape, device.is_cuda() ? 8 : 4, {device, device.is_cuda() ? at::kBFloat16 : at::kFloat});
}

Benchmark make_resnet(c10::Device device, GptSize) {
  const int64_t batch = device.is_cuda() ? 64 : 8, side = device.is_cuda() ? 224 : 64;
  auto model = std::make_shared<ResNet18>();
  at::Tensor images = torch::randn({batch, 3, side, side}), labels = integers(1000, {batch});
  return place("resnet", model, std::array{images, labels},
               {device, device.is_cuda() ? at::kBFloat16 : at::kFloat, at::MemoryFormat::ChannelsLast});
}

Benchmark make_lstm(c10::Device device, GptSize) {
  return place("lstm", std::make_shared<Lstm>(), std::array{torch::randn({32, 16, 128})}, {device});
}

Benchmark make_schnet(c10::Device device, GptSize) {
  const int64_t atoms = device.is_cuda() ? 128 : 48;
  auto model = std::make_shared<SchNet>();
  at::Tensor kinds = integers(20, {atoms}), positions = torch::rand({atoms, 3}) * 8,
             forces = torch::randn({atoms, 3});
  return place("schnet", model, std::array{kinds, positions, torch::zeros({}), forces}, {device});
}

using Maker = Benchmark (*)(c10::Device, GptSize);
const std::vector<std::pair<std::string, Maker>> makers = {
    {"chain", make_chain},   {"mlp", make_mlp},   {"gpt", make_default_gpt},
    {"resnet", make_resnet}, {"lstm", make_lstm}, {"schnet", make_schnet},
};

void require(c10::Device device) {
  if (device.is_cuda() && !torch::cuda::is_available())
    throw Error("the device cuda was asked for, but this libtorch sees no CUDA device; use --device cpu");
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (auto& [name, maker] : makers) names.push_back(name);
  return names;
}

Benchmark make_benchmark(const std::string& name, c10::Device device, GptSize gpt, uint64_t seed) {
  require(device);
  for (auto& [known, maker] : makers)
    if (known == name) {
      torch::manual_seed(seed);
      return maker(device, gpt);
    }
  std::string known;
  for (auto& maker : makers) known += " " + maker.first;
  throw Error("there is no benchmark model \"" + name + "\"; the models are:" + known);
}

Benchmark make_gpt(const GptShape& shape, int64_t batch, c10::Device device, uint64_t seed) {
  require(device);
  torch::manual_seed(seed);
  return place_gpt(shape, batch, {device});
}

Tensors parameters(const Benchmark& benchmark) { return benchmark.module->parameters(); }

void drop_gradients(const Tensors& parameters) {
  for (const at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
}

}  // namespace tandem::bench
