// Recurrent layers and cells.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

namespace {

/// Input (time, batch, 3), two states, and the weights of one layer with `gates` gates of width 4.
Samples layers(int64_t gates) {
  Sizes wide = {gates * 4, 3}, deep = {gates * 4, 4}, bias = {gates * 4};
  return both(
      {{f({5, 2, 3}), f({1, 2, 4}), f({1, 2, 4}), f(wide), f(deep), f(bias), f(bias)},
       {f({5, 2, 3}).t(), f({1, 2, 4}).t(), f({1, 2, 4}), f(wide).t(), f(deep), f(bias).sliced(), f(bias)},
       {f({1, 1, 3}).constant(), f({1, 1, 4}).constant(), f({1, 1, 4}), f(wide), f(deep), f(bias), f(bias)}});
}

Samples cells(int64_t gates) {
  Sizes wide = {gates * 4, 3}, deep = {gates * 4, 4}, bias = {gates * 4};
  return both(
      {{f({2, 3}), f({2, 4}), f({2, 4}), f(wide), f(deep), f(bias), f(bias)},
       {f({2, 3}).t(), f({2, 4}).sliced(), f({2, 4}).expanded(), f(wide).t(), f(deep), f(bias), f(bias)},
       {f({2, 3}), f({2, 4}), f({2, 4}), f(wide), f(deep), none(), none()}});
}

Tensors weights(const Tensors& in) { return {in.begin() + 3, in.end()}; }

/// The weights of both directions: the second one's are made of the first's.
Tensors two_directions(const Tensors& in) {
  Tensors all = weights(in);
  for (const at::Tensor& weight : weights(in)) all.push_back(weight * 0.5);
  return all;
}

}  // namespace

Rows recurrent_rows() {
  return {
      {"lstm", layers(4),
       [](const Tensors& in) {
         return at::lstm(in[0], {in[1], in[2]}, weights(in), true, 1, 0.0, true, false, false);
       }},
      {"lstm/bidirectional", layers(4),
       [](const Tensors& in) {
         return at::lstm(in[0], {at::cat({in[1], in[1]}), at::cat({in[2], in[2]})}, two_directions(in), true,
                         1, 0.0, true, true, false);
       }},
      {"lstm/batch_first", layers(4),
       [](const Tensors& in) {
         return at::lstm(in[0].transpose(0, 1), {in[1], in[2]}, weights(in), true, 1, 0.0, false, false,
                         true);
       }},
      {"gru", layers(3),
       [](const Tensors& in) {
         return at::gru(in[0], in[1], weights(in), true, 1, 0.0, true, false, false);
       }},
      {"rnn_tanh", layers(1),
       [](const Tensors& in) {
         return at::rnn_tanh(in[0], in[1], weights(in), true, 1, 0.0, true, false, false);
       }},
      {"rnn_relu", layers(1),
       [](const Tensors& in) {
         return at::rnn_relu(in[0], in[1], weights(in), true, 1, 0.0, true, false, false);
       }},
      {"rnn_tanh/bidirectional", layers(1),
       [](const Tensors& in) {
         return at::rnn_tanh(in[0], at::cat({in[1], in[2]}), two_directions(in), true, 1, 0.0, true, true,
                             false);
       }},
      {"lstm_cell", cells(4),
       [](const Tensors& in) { return at::lstm_cell(in[0], {in[1], in[2]}, in[3], in[4], in[5], in[6]); }},
      {"gru_cell", cells(3),
       [](const Tensors& in) { return at::gru_cell(in[0], in[1], in[3], in[4], in[5], in[6]); }},
      {"rnn_tanh_cell", cells(1),
       [](const Tensors& in) { return at::rnn_tanh_cell(in[0], in[1], in[3], in[4], in[5], in[6]); }},
      {"rnn_relu_cell", cells(1),
       [](const Tensors& in) { return at::rnn_relu_cell(in[0], in[1], in[3], in[4], in[5], in[6]); }},
  };
}

}  // namespace tandem::sweep
