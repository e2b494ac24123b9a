/// The models that Tandem is measured on, with their inputs; bench/torch_models.py has the same ones in
/// Python.
#pragma once

#include <tandem/graph.h>

#include <functional>
#include <memory>

namespace torch::nn {
class Module;
}

namespace tandem::bench {

/// A model in training mode, inputs for it, and its loss on such inputs.
struct Benchmark {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  Tensors inputs;
  std::function<at::Tensor(const Tensors&)> loss;
};

std::vector<std::string> model_names();

/// What of gpt is to be other than usual; 0 keeps it.
struct GptSize {
  int64_t layers = 0, vocabulary = 0;
};

/// One of `model_names()` in the size and dtype its device is measured with, gpt of another size if asked
/// for; equal seeds give equal weights and inputs.
Benchmark make_benchmark(const std::string& name, c10::Device device, GptSize gpt = {}, uint64_t seed = 0);

struct GptShape {
  int64_t layers, width, heads, vocabulary, context;
  double dropout = 0;
};

/// A gpt of another shape, with random tokens of full context length as inputs.
Benchmark make_gpt(const GptShape& shape, int64_t batch, c10::Device device, uint64_t seed = 0);

/// Every parameter of the module, in one fixed order, and dropping their gradients.
Tensors parameters(const Benchmark& benchmark);
void drop_gradients(const Tensors& parameters);

}  // namespace tandem::bench
