// Activation functions of neural networks.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows activation_rows() {
  const Samples any = unary(-4, 4), rows = along();
  const Samples channels = both({{f({2, 3, 5}), f({3})},
                                 {f({2, 3}), f({1})},
                                 {f({7}), f({1})},
                                 {f({}), f({})},
                                 {f({0, 3}), f({3})},
                                 {f({2, 3, 4}).t(), f({3}).sliced()}});
  const Samples even = both({{f({4, 6})},
                             {f({8})},
                             {f({0, 4})},
                             {f({6, 4}).t()},
                             {f({3, 4}).sliced()},
                             {f({3, 4}).expanded()},
                             {f({3, 5})}});
  return {
      {"relu", any, [](In x) { return at::relu(x); }},
      {"relu6", any, [](In x) { return at::relu6(x); }},
      {"leaky_relu", any, [](In x) { return at::leaky_relu(x, 0.1); }},
      {"prelu", channels, [](In x, In slope) { return at::prelu(x, slope); }},
      {"elu", any, [](In x) { return at::elu(x, 1.3); }},
      {"elu/scales", any, [](In x) { return at::elu(x, 1.2, 0.8, 1.5); }},
      {"selu", any, [](In x) { return at::selu(x); }},
      {"celu", any, [](In x) { return at::celu(x, 1.4); }},
      {"gelu", any, [](In x) { return at::gelu(x); }},
      {"gelu/tanh", any, [](In x) { return at::gelu(x, "tanh"); }},
      {"silu", any, [](In x) { return at::silu(x); }},
      {"mish", any, [](In x) { return at::mish(x); }},
      {"softplus", any, [](In x) { return at::softplus(x); }},
      {"softplus/threshold", any, [](In x) { return at::softplus(x, 2.0, 1.0); }},
      {"log_sigmoid", any, [](In x) { return at::log_sigmoid(x); }},
      {"hardsigmoid", any, [](In x) { return at::hardsigmoid(x); }},
      {"hardswish", any, [](In x) { return at::hardswish(x); }},
      {"hardtanh", any, [](In x) { return at::hardtanh(x, -0.8, 0.9); }},
      {"hardshrink", any, [](In x) { return at::hardshrink(x, 0.5); }},
      {"softshrink", any, [](In x) { return at::softshrink(x, 0.5); }},
      {"threshold", any, [](In x) { return at::threshold(x, 0.3, -1); }},
      {"glu", even, [](In x) { return at::glu(x); }},
      {"glu/first", both({{f({4, 6})}, {f({2, 0})}, {f({6, 4}).t()}}), [](In x) { return at::glu(x, 0); }},
      {"softmax", rows, [](In x) { return at::softmax(x, -1); }},
      {"softmax/first", rows, [](In x) { return at::softmax(x, 0); }},
      {"softmax/dtype", rows, [](In x) { return at::softmax(x, -1, at::kDouble); }},
      {"softmax/zero_dim", both({{f({})}}), [](In x) { return at::softmax(x, 0); }},
      {"special_softmax", rows, [](In x) { return at::special_softmax(x, 0); }},
      {"log_softmax", rows, [](In x) { return at::log_softmax(x, -1); }},
      {"log_softmax/first", rows, [](In x) { return at::log_softmax(x, 0); }},
      {"log_softmax/dtype", rows, [](In x) { return at::log_softmax(x, 0, at::kDouble); }},
      {"special_log_softmax", rows, [](In x) { return at::special_log_softmax(x, 0); }},
      {"_safe_softmax", rows, [](In x) { return at::_safe_softmax(x, -1); }},
  };
}

}  // namespace tandem::sweep
