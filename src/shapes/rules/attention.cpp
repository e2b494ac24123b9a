#include "shapes/rules/helpers.h"

namespace tandem::rules {
namespace {

/// [batch, heads, length, features], laid out as [batch, length, heads, features].
at::Tensor by_position(at::IntArrayRef sizes, at::ScalarType dtype) {
  Dims strides{sizes[1] * sizes[2] * sizes[3], sizes[3], sizes[1] * sizes[3], 1};
  return make_meta(sizes, strides, dtype);
}
at::Tensor by_position_like(const at::Tensor& tensor) {
  return by_position(tensor.sizes(), tensor.scalar_type());
}

Dims output_sizes(const ShapeCall& call) {
  return {call.tensor(0).size(0), call.tensor(0).size(1), call.tensor(0).size(2), call.tensor(2).size(3)};
}

void flash_cpu(ShapeCall& call) {
  const at::Tensor& query = call.tensor(0);
  int64_t batch = query.size(0), heads = query.size(1), length = query.size(2);
  call.give(like(query));
  call.give(make_meta({batch, heads, length}, {length * heads, 1, heads}, statistics(query.scalar_type())));
}

void flash_cpu_backward(ShapeCall& call) {
  for (size_t i : {1, 2, 3}) call.give(by_position_like(call.tensor(i)));
}

void efficient(ShapeCall& call) {
  const at::Tensor& query = call.tensor(0);
  constexpr int64_t alignment = 32;
  int64_t rows = call.boolean(4) ? (query.size(2) + alignment - 1) / alignment * alignment : 0;
  call.give(by_position(output_sizes(call), query.scalar_type()));
  call.give(make_meta({query.size(0), query.size(1), rows}, at::kFloat));
  call.give(scalar(at::kLong));  // seed and offset of the dropout stay on the CPU
  call.give(scalar(at::kLong));
  call.cpu_results = 0b1100;
}

void efficient_backward(ShapeCall& call) {
  const at::Tensor &query = call.tensor(1), &key = call.tensor(2), &value = call.tensor(3);
  at::Tensor bias = call.optional_tensor(4);
  for (const at::Tensor* t : {&query, &key, &value}) call.give(by_position_like(*t));
  if (!mask(call, 10)[3] || !bias.defined()) return call.give({});
  constexpr int64_t alignment = 16;
  Dims sizes(bias.sizes().begin(), bias.sizes().end());
  sizes.back() = (sizes.back() + alignment - 1) / alignment * alignment;
  call.give(make_meta(sizes, bias.scalar_type()).slice(-1, 0, bias.size(-1)));
}

void flash(ShapeCall& call) {
  const at::Tensor &query = call.tensor(0), &key = call.tensor(1);
  if (call.boolean(5)) return;  // the mask for debugging has a size of the kernel's own
  call.give(like(query));
  call.give(make_meta({query.size(0), query.size(1), query.size(2)}, at::kFloat));
  call.give({});
  call.give({});
  call.results.emplace_back(query.size(2));
  call.results.emplace_back(key.size(2));
  call.give(make_meta({2}, at::kUInt64));
  call.give(scalar(at::kUInt64));
  call.give(make_meta({0}, query.scalar_type()));
}

void flash_backward(ShapeCall& call) {
  for (size_t i : {1, 2, 3}) call.give(like(call.tensor(i)));
}

constexpr Row attention_rows[] = {
    {"aten::_scaled_dot_product_flash_attention_for_cpu", flash_cpu},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", flash_cpu_backward},
    {"aten::_scaled_dot_product_efficient_attention", efficient},
    {"aten::_scaled_dot_product_efficient_attention_backward", efficient_backward},
    {"aten::_scaled_dot_product_flash_attention", flash},
    {"aten::_scaled_dot_product_flash_attention_backward", flash_backward},
};

}  // namespace

std::span<const Row> attention() { return attention_rows; }

}  // namespace tandem::rules
