#include "trace/shape_samples.h"

namespace tandem::samples {
namespace {

void add_convolutions(std::vector<Sample>& samples) {
  struct Case {
    at::Tensor x, w;
    std::vector<int64_t> stride, padding, dilation;
    bool transposed = false;
    std::vector<int64_t> output_padding;
    int64_t groups = 1;
  };
  std::vector<Case> cases = {
      {floats({2, 3, 9}), floats({4, 3, 3}), {1}, {1}, {1}, false, {0}},
      {floats({2, 4, 9}), floats({4, 2, 3}), {2}, {0}, {2}, false, {0}, 2},
      {floats({2, 3, 8, 9}), floats({4, 3, 3, 3}), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}},
      {floats({2, 3, 8, 9}), floats({4, 3, 1, 1}), {2, 2}, {0, 0}, {1, 1}, false, {0, 0}},
      {floats({2, 4, 8, 9}), floats({4, 1, 3, 3}), {2, 2}, {1, 1}, {2, 2}, false, {0, 0}, 4},
      {floats({2, 4, 5, 6}), floats({4, 3, 3, 3}), {2, 2}, {1, 1}, {1, 1}, true, {1, 1}},
      {floats({2, 4, 5}), floats({4, 3, 3}), {2}, {1}, {1}, true, {0}},
      {floats({1, 1, 8, 8}), floats({1, 1, 3, 3}), {1, 1}, {0, 0}, {1, 1}, false, {0, 0}},
      {floats({2, 3, 5, 6, 7}), floats({4, 3, 3, 3, 3}), {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false, {0, 0, 0}},
      {floats({2, 4, 3, 4, 5}), floats({4, 2, 3, 3, 3}), {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, true, {0, 0, 0}},
      {floats({0, 3, 8, 9}), floats({4, 3, 3, 3}), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}},
      {floats({2, 1, 9}), floats({4, 1, 3}), {1}, {1}, {1}, false, {0}},
      {floats({2, 3, 9}), floats({1, 3, 3}), {1}, {1}, {1}, false, {0}},
      {floats({1, 3, 9}), floats({4, 3, 9}), {1}, {0}, {1}, false, {0}},
      {floats({2, 1, 8, 9}), floats({4, 1, 3, 3}), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}},
      {floats({2, 3, 8, 9}), floats({1, 3, 3, 3}), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}},
      {floats({1, 3, 8, 9}), floats({4, 3, 8, 9}), {1, 1}, {0, 0}, {1, 1}, false, {0, 0}},
      {floats({2, 3, 1, 9}), floats({4, 3, 1, 3}), {1, 1}, {0, 1}, {1, 1}, false, {0, 0}},
      {floats({2, 3, 8, 1}), floats({4, 3, 3, 1}), {1, 1}, {1, 0}, {1, 1}, false, {0, 0}},
      {floats({2, 1, 5, 6}), floats({1, 3, 3, 3}), {2, 2}, {1, 1}, {1, 1}, true, {1, 1}},
      {floats({2, 4, 5, 6}), floats({4, 1, 3, 3}), {2, 2}, {1, 1}, {1, 1}, true, {1, 1}},
      {floats({2, 1, 5, 6, 7}), floats({4, 1, 3, 3, 3}), {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false, {0, 0, 0}},
      {floats({16, 64, 30, 30}), floats({64, 64, 3, 3}), {1, 1}, {1, 1}, {1, 1}, false, {0, 0}},
  };
  for (const Case& c : cases) {
    at::Tensor y = at::convolution(c.x, c.w, {}, c.stride, c.padding, c.dilation, c.transposed,
                                   c.output_padding, c.groups);
    c10::IValue channels = ints({y.size(1)});
    if (c.x.dim() == 5 && !c.transposed && c.groups == 1)
      samples.push_back({"aten::slow_conv3d_forward",
                         {c.x, c.w, ints(c.w.sizes().slice(2).vec()), floats({y.size(1)}), ints(c.stride),
                          ints(c.padding)}});
    samples.push_back({"aten::convolution",
                       {c.x, c.w, none, ints(c.stride), ints(c.padding), ints(c.dilation), c.transposed,
                        ints(c.output_padding), c.groups}});
    samples.push_back({"aten::convolution",
                       {c.x, c.w, floats({y.size(1)}), ints(c.stride), ints(c.padding), ints(c.dilation),
                        c.transposed, ints(c.output_padding), c.groups}});
    for (auto mask : {masks({true, true, true}), masks({false, true, false}), masks({true, false, true})})
      samples.push_back({"aten::convolution_backward",
                         {at::rand_like(y), c.x, c.w, channels, ints(c.stride), ints(c.padding),
                          ints(c.dilation), c.transposed, ints(c.output_padding), c.groups, mask}});
  }
}

void add_normalisation(std::vector<Sample>& samples) {
  for (const at::Tensor& x :
       {floats({4, 3}), floats({4, 3, 5}), floats({4, 3, 5, 6}), floats({2, 3, 4, 5, 6})}) {
    auto stat = [] { return floats({3}); };
    for (bool training : {true, false})
      for (bool affine : {true, false}) {
        c10::IValue weight = affine ? c10::IValue(stat()) : none, bias = affine ? c10::IValue(stat()) : none;
        samples.push_back(
            {"aten::native_batch_norm", {x, weight, bias, stat(), stat(), training, 0.1, 1e-5}});
        samples.push_back(
            {"aten::_native_batch_norm_legit", {x, weight, bias, stat(), stat(), training, 0.1, 1e-5}});
        samples.push_back({"aten::_native_batch_norm_legit_functional",
                           {x, weight, bias, stat(), stat(), training, 0.1, 1e-5}});
        at::Tensor saved = training ? stat() : floats({0});
        for (auto mask : {masks({true, true, true}), masks({true, false, false})})
          samples.push_back(
              {"aten::native_batch_norm_backward",
               {at::rand_like(x), x, weight, stat(), stat(), saved, saved, training, 1e-5, mask}});
      }
    samples.push_back({"aten::_native_batch_norm_legit.no_stats", {x, stat(), stat(), true, 0.1, 1e-5}});
    samples.push_back(
        {"aten::_native_batch_norm_legit_no_training", {x, stat(), stat(), stat(), stat(), 0.1, 1e-5}});
    samples.push_back(
        {"aten::_batch_norm_with_update_functional", {x, stat(), stat(), stat(), stat(), 0.1, 1e-5}});
    samples.push_back({"aten::_batch_norm_with_update", {x, stat(), stat(), stat(), stat(), 0.1, 1e-5}});
    samples.push_back({"aten::_batch_norm_no_update", {x, stat(), stat(), stat(), stat(), 0.1, 1e-5}});
    samples.push_back({"aten::batch_norm_backward",
                       {at::rand_like(x), x, stat(), stat(), stat(), stat(), stat(), true, 1e-5,
                        masks({true, true, true}), at::empty({0}, at::kByte)}});
    samples.push_back({"aten::batch_norm_update_stats", {x, stat(), stat(), 0.1}});
    if (x.dim() < 2) continue;
    int64_t n = x.size(0), rest = 1;
    for (int64_t d = 2; d < x.dim(); ++d) rest *= x.size(d);
    samples.push_back({"aten::native_group_norm", {x, stat(), stat(), n, 3, rest, 3, 1e-5}});
    samples.push_back({"aten::native_group_norm", {x, none, none, n, 3, rest, 1, 1e-5}});
    for (auto mask : {masks({true, true, true}), masks({true, false, false})})
      samples.push_back({"aten::native_group_norm_backward",
                         {at::rand_like(x), x, floats({n, 3}), floats({n, 3}), stat(), n, 3, rest, 3, mask}});
  }
  for (const at::Tensor& x : {floats({4, 3}), floats({2, 4, 3}), floats({2, 3, 4, 5}), floats({0, 3})})
    for (bool affine : {true, false}) {
      std::vector<int64_t> last{x.size(-1)}, stats = x.sizes().vec();
      stats.back() = 1;
      c10::IValue weight = affine ? c10::IValue(floats(last)) : none;
      samples.push_back({"aten::native_layer_norm", {x, ints(last), weight, weight, 1e-5}});
      samples.push_back({"aten::_fused_rms_norm", {x, ints(last), weight, 1e-5}});
      for (auto mask :
           {masks({true, affine, affine}), masks({false, affine, affine}), masks({true, false, false})})
        samples.push_back(
            {"aten::native_layer_norm_backward",
             {at::rand_like(x), x, ints(last), floats(stats), floats(stats), weight, weight, mask}});
      samples.push_back({"aten::_fused_rms_norm_backward",
                         {at::rand_like(x), x, ints(last), floats(stats), weight, masks({true, affine})}});
    }
  samples.push_back(
      {"aten::native_layer_norm", {floats({2, 3, 4}), ints({3, 4}), floats({3, 4}), floats({3, 4}), 1e-5}});
  samples.push_back({"aten::_weight_norm_interface", {floats({4, 3}), floats({4, 1}), 0}});
  samples.push_back({"aten::_weight_norm_interface_backward",
                     {floats({4, 3}), floats({4, 3}), floats({4, 1}), floats({4, 1}), 0}});
}

void add_pooling(std::vector<Sample>& samples) {
  for (const at::Tensor& x : {floats({2, 3, 8, 9}), floats({3, 8, 9}), floats({2, 1, 4, 4})}) {
    samples.push_back({"aten::_adaptive_avg_pool2d", {x, ints({2, 3})}});
    samples.push_back({"aten::_adaptive_avg_pool2d", {x, ints({1, 1})}});
    at::Tensor y = at::_adaptive_avg_pool2d(x, {2, 3});
    samples.push_back({"aten::_adaptive_avg_pool2d_backward", {at::rand_like(y), x}});
    samples.push_back({"aten::adaptive_max_pool2d", {x, ints({2, 3})}});
    auto [m, i] = at::max_pool2d_with_indices(x, {2, 2});
    samples.push_back({"aten::max_pool2d_with_indices", {x, ints({2, 2})}});
    samples.push_back(
        {"aten::max_pool2d_with_indices", {x, ints({3, 3}), ints({2, 2}), ints({1, 1}), ints({1, 1}), true}});
    samples.push_back(
        {"aten::max_pool2d_with_indices_backward",
         {at::rand_like(m), x, ints({2, 2}), ints({2, 2}), ints({0, 0}), ints({1, 1}), false, i}});
    samples.push_back({"aten::avg_pool2d", {x, ints({2, 2})}});
    samples.push_back({"aten::avg_pool2d_backward",
                       {at::rand_like(m), x, ints({2, 2}), ints({2, 2}), ints({0, 0}), false, true, none}});
    samples.push_back({"aten::max_unpool2d", {m, i, ints({8, 9})}});
    at::Tensor random = x.dim() == 4 ? floats({x.size(0), x.size(1), 2}) : floats({1, x.size(0), 2});
    samples.push_back({"aten::fractional_max_pool2d", {x, ints({2, 2}), ints({3, 3}), random}});
    auto [fm, fi] = at::fractional_max_pool2d(x, {2, 2}, {3, 3}, random);
    samples.push_back(
        {"aten::fractional_max_pool2d_backward", {at::rand_like(fm), x, ints({2, 2}), ints({3, 3}), fi}});
  }
  for (const at::Tensor& x : {floats({2, 3, 4, 6, 7}), floats({3, 4, 6, 7})}) {
    samples.push_back({"aten::_adaptive_avg_pool3d", {x, ints({2, 3, 3})}});
    at::Tensor y = at::_adaptive_avg_pool3d(x, {2, 3, 3});
    samples.push_back({"aten::_adaptive_avg_pool3d_backward", {at::rand_like(y), x}});
    auto [m, i] = at::max_pool3d_with_indices(x, {2, 2, 2});
    samples.push_back({"aten::max_pool3d_with_indices", {x, ints({2, 2, 2})}});
    samples.push_back({"aten::max_pool3d_with_indices",
                       {x, ints({3, 3, 3}), ints({2, 2, 2}), ints({1, 1, 1}), ints({1, 1, 1}), true}});
    samples.push_back({"aten::max_pool3d_with_indices_backward",
                       {at::rand_like(m), x, ints({2, 2, 2}), ints({2, 2, 2}), ints({0, 0, 0}),
                        ints({1, 1, 1}), false, i}});
    samples.push_back({"aten::avg_pool3d", {x, ints({2, 2, 2})}});
    samples.push_back(
        {"aten::avg_pool3d_backward",
         {at::rand_like(m), x, ints({2, 2, 2}), ints({2, 2, 2}), ints({0, 0, 0}), false, true, none}});
    samples.push_back({"aten::max_unpool3d", {m, i, ints({4, 6, 7}), ints({2, 2, 2}), ints({0, 0, 0})}});
    at::Tensor random = floats({x.dim() == 5 ? x.size(0) : 1, 3, 3});
    samples.push_back({"aten::fractional_max_pool3d", {x, ints({2, 2, 2}), ints({2, 3, 3}), random}});
    auto [fm, fi] = at::fractional_max_pool3d(x, {2, 2, 2}, {2, 3, 3}, random);
    samples.push_back({"aten::fractional_max_pool3d_backward",
                       {at::rand_like(fm), x, ints({2, 2, 2}), ints({2, 3, 3}), fi}});
  }
}

void add_recurrent(std::vector<Sample>& samples) {
  constexpr int64_t hidden = 5, input = 3, steps = 4, batch = 2, lstm = 2;
  for (bool train : {true, false}) {
    at::Tensor x = floats({steps, batch, input}), h = floats({batch, hidden}), c = floats({batch, hidden});
    at::Tensor w0 = floats({4 * hidden, input}), w1 = floats({4 * hidden, hidden}), b0 = floats({4 * hidden}),
               b1 = floats({4 * hidden});
    samples.push_back(
        {"aten::mkldnn_rnn_layer",
         {x, w0, w1, b0, b1, h, c, false, ints({}), lstm, hidden, 1, true, false, false, train}});
    if (!train) continue;
    auto [y, hy, cy, workspace] =
        at::mkldnn_rnn_layer(x, w0, w1, b0, b1, h, c, false, {}, lstm, hidden, 1, true, false, false, true);
    samples.push_back({"aten::mkldnn_rnn_layer_backward",
                       {x,
                        w0,
                        w1,
                        b0,
                        b1,
                        h,
                        c,
                        y,
                        hy,
                        cy,
                        at::rand_like(y),
                        at::rand_like(hy),
                        at::rand_like(cy),
                        false,
                        lstm,
                        hidden,
                        1,
                        true,
                        true,
                        false,
                        ints({}),
                        false,
                        workspace}});
    samples.push_back(
        {"aten::mkldnn_rnn_layer_backward",
         {x,    w0,    w1,   b0,     b1, h,    c,    y,     hy,       cy,    at::rand_like(y), none,
          none, false, lstm, hidden, 1,  true, true, false, ints({}), false, workspace}});
  }
}

void add_attention(std::vector<Sample>& samples) {
  for (auto [q, k] : std::vector<std::pair<at::Tensor, at::Tensor>>{
           {floats({2, 3, 6, 8}), floats({2, 3, 6, 8})},
           {floats({2, 3, 6, 8}), floats({2, 3, 5, 8})},
           {floats({2, 6, 3, 8}).transpose(1, 2), floats({2, 6, 3, 8}).transpose(1, 2)},
           {floats({2, 3, 40, 16}), floats({2, 3, 600, 16})}}) {
    at::Tensor v = at::rand_like(k), mask = floats({q.size(2), k.size(2)});
    samples.push_back({"aten::_scaled_dot_product_flash_attention_for_cpu", {q, k, v, 0.0, true}});
    samples.push_back({"aten::_scaled_dot_product_flash_attention_for_cpu", {q, k, v, 0.0, false, mask}});
    auto [y, lse] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, true);
    samples.push_back({"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                       {at::rand_like(y), q, k, v, y, lse, 0.0, true}});
  }
}

}  // namespace

std::vector<Sample> layers() {
  std::vector<Sample> samples;
  add_convolutions(samples);
  add_normalisation(samples);
  add_pooling(samples);
  add_recurrent(samples);
  add_attention(samples);
  return samples;
}

}  // namespace tandem::samples
