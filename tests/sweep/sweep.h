/// The operator sweep: a table of differentiable operators, each of which must compute and differentiate as
/// in eager when compiled.
#pragma once

#include "samples.h"

#include <concepts>
#include <tuple>

namespace tandem::sweep {

using In = const at::Tensor&;
using Function = Tensors (*)(const Tensors&);

inline Tensors listed(at::Tensor one) { return {std::move(one)}; }
inline Tensors listed(Tensors many) { return many; }
template <class... Ts>
Tensors listed(const std::tuple<Ts...>& results) {
  return std::apply([](const auto&... each) { return Tensors{each...}; }, results);
}

/// The function of a list of tensors that a captureless lambda of one to five tensors stands for.
template <class F>
Tensors call(const Tensors& in) {
  if constexpr (std::invocable<F, const Tensors&>)
    return listed(F{}(in));
  else if constexpr (std::invocable<F, In>)
    return listed(F{}(in[0]));
  else if constexpr (std::invocable<F, In, In>)
    return listed(F{}(in[0], in[1]));
  else if constexpr (std::invocable<F, In, In, In>)
    return listed(F{}(in[0], in[1], in[2]));
  else if constexpr (std::invocable<F, In, In, In, In>)
    return listed(F{}(in[0], in[1], in[2], in[3]));
  else
    return listed(F{}(in[0], in[1], in[2], in[3], in[4]));
}

/// One operator. A name is the operator's, with what is special about the row after a slash.
struct Row {
  std::string name;
  Samples samples;
  Function function;

  template <class F>
  Row(std::string name_, Samples samples_, F)
      : name(std::move(name_)), samples(std::move(samples_)), function(&call<F>) {}
};
using Rows = std::vector<Row>;

Rows unary_rows();
Rows activation_rows();
Rows binary_rows();
Rows reduction_rows();
Rows matmul_rows();
Rows linalg_rows();
Rows fft_rows();
Rows indexing_rows();
Rows view_rows();
Rows shape_rows();
Rows convolution_rows();
Rows pooling_rows();
Rows resampling_rows();
Rows normalisation_rows();
Rows recurrent_rows();
Rows loss_rows();
Rows random_rows();
Rows inplace_rows();

}  // namespace tandem::sweep
