/// Calls of operators on small real tensors, on which shape inference is compared with the kernels.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace tandem::samples {

/// Arguments left out at the end take the schema's defaults.
struct Sample {
  std::string op;
  std::vector<c10::IValue> arguments;
};

/// A tensor of small positive numbers, different at each place.
at::Tensor floats(at::IntArrayRef sizes);
/// Indices below `bound`.
at::Tensor indices(at::IntArrayRef sizes, int64_t bound = 2);
at::Tensor bools(at::IntArrayRef sizes);
at::Tensor complexes(at::IntArrayRef sizes);
/// Symmetric positive definite in its last two dimensions.
at::Tensor matrices(at::IntArrayRef sizes);
c10::IValue ints(std::vector<int64_t> values);
/// Booleans as the schema's bool[N].
c10::IValue masks(std::vector<bool> values);
c10::IValue tensors(std::vector<at::Tensor> values);
c10::IValue optional_tensors(std::vector<std::optional<at::Tensor>> values);
inline const c10::IValue none;

std::vector<Sample> pointwise();
std::vector<Sample> reductions();
std::vector<Sample> layers();
std::vector<Sample> resampling();
std::vector<Sample> indexing();
std::vector<Sample> losses();
std::vector<Sample> algebra();
std::vector<Sample> others();
/// Operators that exist on CUDA alone.
std::vector<Sample> cuda_only();

}  // namespace tandem::samples
