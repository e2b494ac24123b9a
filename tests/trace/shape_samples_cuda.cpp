#include "trace/shape_samples.h"

namespace tandem::samples {
namespace {

/// Without CUDA the samples are only counted: a small CPU tensor stands in for what a kernel would have
/// returned.
at::Tensor on_cuda(const at::Tensor& t) { return at::hasCUDA() ? t.cuda() : t; }

void add_batch_norm(std::vector<Sample>& samples) {
  at::Tensor x = on_cuda(floats({4, 3, 5, 6})), stat = on_cuda(floats({3})),
             reserve = on_cuda(at::empty({0}, at::kByte));
  for (bool training : {true, false})
    samples.push_back(
        {"aten::cudnn_batch_norm", {x, stat, stat, stat.clone(), stat.clone(), training, 0.1, 1e-5}});
  at::Tensor mean = stat, variance = stat;
  if (at::hasCUDA())
    std::tie(std::ignore, mean, variance, reserve) =
        at::cudnn_batch_norm(x, stat, stat, stat.clone(), stat.clone(), true, 0.1, 1e-5);
  samples.push_back(
      {"aten::cudnn_batch_norm_backward", {x, x, stat, stat, stat, mean, variance, 1e-5, reserve}});
}

void add_efficient_attention(std::vector<Sample>& samples, const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v, const c10::IValue& bias) {
  samples.push_back({"aten::_scaled_dot_product_efficient_attention", {q, k, v, bias, true, 0.0, true}});
  samples.push_back({"aten::_scaled_dot_product_efficient_attention", {q, k, v, bias, false}});
  at::Tensor out = q, lse = q, seed = q, offset = q;
  auto optional = bias.isNone() ? std::optional<at::Tensor>() : std::optional<at::Tensor>(bias.toTensor());
  if (at::hasCUDA())
    std::tie(out, lse, seed, offset) = at::_scaled_dot_product_efficient_attention(q, k, v, optional, true);
  for (bool bias_too : {false, true})
    samples.push_back({"aten::_scaled_dot_product_efficient_attention_backward",
                       {at::rand_like(out), q, k, v, bias.isNone() ? c10::IValue(at::Tensor()) : bias, out,
                        lse, seed, offset, 0.0, masks({true, true, true, bias_too})}});
}

void add_flash_attention(std::vector<Sample>& samples, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v) {
  samples.push_back({"aten::_scaled_dot_product_flash_attention", {q, k, v, 0.0, true}});
  at::Tensor out = q, lse = q, cum_q, cum_k, rng = q, unused = q;
  c10::SymInt max_q = 0, max_k = 0;
  if (at::hasCUDA())
    std::tie(out, lse, cum_q, cum_k, max_q, max_k, rng, unused, std::ignore) =
        at::_scaled_dot_product_flash_attention(q, k, v, 0.0, true);
  samples.push_back({"aten::_scaled_dot_product_flash_attention_backward",
                     {at::rand_like(out), q, k, v, out, lse, cum_q, cum_k, max_q.expect_int(),
                      max_k.expect_int(), 0.0, true, rng, unused}});
}

}  // namespace

std::vector<Sample> cuda_only() {
  std::vector<Sample> samples;
  add_batch_norm(samples);
  auto heads = [](bool by_position, int64_t length, at::ScalarType dtype) {
    at::Tensor t = by_position ? floats({2, length, 3, 64}).transpose(1, 2) : floats({2, 3, length, 64});
    return on_cuda(t.to(dtype));
  };
  for (bool by_position : {true, false}) {
    at::Tensor q = heads(by_position, 33, at::kFloat), k = heads(by_position, 48, at::kFloat),
               v = heads(by_position, 48, at::kFloat);
    add_efficient_attention(samples, q, k, v, none);
    add_efficient_attention(samples, q, k, v, on_cuda(floats({2, 3, 33, 48})));
    add_flash_attention(samples, heads(by_position, 33, at::kBFloat16), heads(by_position, 48, at::kBFloat16),
                        heads(by_position, 48, at::kBFloat16));
  }
  at::Tensor packed = on_cuda(floats({2, 48, 3, 3, 64}));
  auto part = [&](int64_t i) { return packed.select(2, i).transpose(1, 2); };
  add_efficient_attention(samples, part(0), part(1), part(2), none);
  return samples;
}

}  // namespace tandem::samples
