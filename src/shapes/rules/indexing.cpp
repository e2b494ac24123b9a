#include "shapes/rules/helpers.h"

#include <ATen/WrapDimUtils.h>

namespace tandem::rules {
namespace {

void embedding(ShapeCall& call) {
  const at::Tensor &table = call.tensor(0), &indices = call.tensor(1);
  TORCH_CHECK(table.dim() == 2, "'weight' must be 2-D");
  Dims sizes(indices.sizes().begin(), indices.sizes().end());
  sizes.push_back(table.size(1));
  call.give(make_meta(sizes, table.scalar_type()));
}

void embedding_backward(ShapeCall& call) {
  call.give(make_meta({call.integer(2), call.tensor(0).size(-1)}, call.tensor(0).scalar_type()));
}

constexpr int64_t sum_of_bag = 0, largest_of_bag = 2;

/// Sums of bags of plain rows go to a kernel that does without the map from indices to bags.
bool summed_without_map(const ShapeCall& call) {
  const at::Tensor& table = call.tensor(0);
  at::Tensor weights = call.optional_tensor(6);
  bool kernel_knows = table.scalar_type() == at::kFloat || table.scalar_type() == at::kHalf ||
                      table.scalar_type() == at::kBFloat16;
  return call.integer(4) == sum_of_bag && call.integer(8) < 0 && kernel_knows && table.stride(1) == 1 &&
         (!weights.defined() || weights.stride(0) == 1);
}

template <bool Trains>
void embedding_bag(ShapeCall& call) {
  if (!call.device.is_cpu()) return;
  const at::Tensor &table = call.tensor(0), &indices = call.tensor(1), &offsets = call.tensor(2);
  if (table.dim() != 2 || indices.dim() != 1 || offsets.dim() != 1) return;  // libtorch has the error for it
  int64_t mode = call.integer(4), bags = offsets.size(0) - (call.boolean(7) ? 1 : 0);
  at::ScalarType places = c10::promoteTypes(indices.scalar_type(), offsets.scalar_type());
  int64_t counts = Trains || mode != sum_of_bag ? bags : offsets.size(0);
  call.give(make_meta({bags, table.size(1)}, table.scalar_type()));
  call.give(make_meta({summed_without_map(call) ? 0 : indices.size(0)}, places));
  call.give(make_meta({counts}, places));
  call.give(mode == largest_of_bag ? make_meta({bags, table.size(1)}, places) : make_meta({counts}, places));
}

/// Sparse gradients are left to libtorch.
void embedding_bag_any_backward(ShapeCall& call) {
  if (!call.boolean(9))
    call.give(make_meta({call.integer(6), call.tensor(0).size(1)}, call.tensor(0).scalar_type()));
}
void embedding_bag_backward(ShapeCall& call) {
  call.give(make_meta({call.integer(5), call.tensor(0).size(1)}, call.tensor(0).scalar_type()));
}
void embedding_bag_weights_backward(ShapeCall& call) {
  call.give(make_meta({call.tensor(2).size(0)}, call.tensor(0).scalar_type()));
}

void index_select(ShapeCall& call) {
  const at::Tensor &self = call.tensor(0), &index = call.tensor(2);
  int64_t dim = at::maybe_wrap_dim(call.integer(1), self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  TORCH_CHECK(self.dim() > 0 || index.numel() == 1,
              "index_select(): Index to scalar can have only 1 value, got ", index.numel(), " value(s)");
  Dims sizes(self.sizes().begin(), self.sizes().end());
  if (!sizes.empty()) sizes[dim] = index.numel();
  call.give(make_meta(sizes, self.scalar_type()));
}

/// Meta kernels look at the first row, which may not be there; they have the error for rows of another dtype.
void rows_changed(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  if (self.scalar_type() == call.tensor(3).scalar_type() &&
      (self.numel() == 0 || call.tensor(2).numel() == 0))
    call.give(contiguous_like(self));
}

void masked_scatter_backward(ShapeCall& call) {
  call.give(make_meta(call.integers(2), call.tensor(0).scalar_type()));
}

template <int Dtype>
void permutation(ShapeCall& call) {
  TORCH_CHECK(call.integer(0) >= 0, "n must be non-negative, got", call.integer(0));
  call.give(make_meta({call.integer(0)}, dtype_or(call, Dtype, at::kLong)));
}

void flip(ShapeCall& call) { call.give(like(call.tensor(0))); }
/// On the CPU the two pieces along each dimension are concatenated, which keeps channels-last where both have
/// them.
void roll(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  const std::vector<int64_t> shifts = call.integers(1), dims = call.integers(2);
  if (self.numel() == 0) return call.give(like(self));
  if (!call.device.is_cpu() || dims.empty()) return call.give(contiguous_like(self));
  if (shifts.size() != dims.size()) return;  // libtorch has the error for it
  at::Tensor rolled = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t size = rolled.size(dims[i]), start = ((size - shifts[i]) % size + size) % size;
    rolled =
        at::cat({rolled.narrow(dims[i], start, size - start), rolled.narrow(dims[i], 0, start)}, dims[i]);
  }
  call.give(rolled);
}

void rotate(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  int64_t quarters = ((call.integer(1) % 4) + 4) % 4;
  std::vector<int64_t> dims = call.integers(2);
  if (dims.size() != 2 || self.dim() < 2) return;  // libtorch has the error for it
  if (quarters == 0) return call.give(contiguous_like(self));
  at::Tensor flipped = like(self);
  call.give(quarters == 2 ? flipped : flipped.transpose(dims[0], dims[1]));
}

void take(ShapeCall& call) { call.give(make_meta(call.tensor(1).sizes(), call.tensor(0).scalar_type())); }

/// `Values` is the place of the tensor of values, `Narrow` of the flag that asks for 32-bit places.
template <int Values, int Narrow>
void places(ShapeCall& call) {
  call.give(make_meta(call.tensor(Values).sizes(), call.boolean(Narrow) ? at::kInt : at::kLong));
}
void place(ShapeCall& call) { call.give(scalar(call.boolean(2) ? at::kInt : at::kLong)); }

void unfold_backward(ShapeCall& call) {
  call.give(make_meta(call.integers(1), call.tensor(0).scalar_type()));
}

void multinomial(ShapeCall& call) {
  const at::Tensor& self = call.tensor(0);
  if (self.dim() == 1)
    call.give(make_meta({call.integer(1)}, at::kLong));
  else
    call.give(make_meta({self.size(0), call.integer(1)}, at::kLong));
}

void segments(ShapeCall& call) {
  const at::Tensor& data = call.tensor(0);
  at::Tensor lengths = call.optional_tensor(2), offsets = call.optional_tensor(4);
  if (!lengths.defined() && !offsets.defined()) return;  // libtorch has the error for it
  const at::Tensor& segments = lengths.defined() ? lengths : offsets;
  Dims sizes(segments.sizes().begin(), segments.sizes().end());
  if (!lengths.defined()) sizes.back() -= 1;
  sizes.append(data.sizes().begin() + call.integer(5) + 1, data.sizes().end());
  call.give(make_meta(sizes, data.scalar_type()));
}
void segments_backward(ShapeCall& call) { call.give(contiguous_like(call.tensor(2))); }

constexpr Row indexing_rows[] = {
    {"aten::embedding", embedding},
    {"aten::embedding_dense_backward", embedding_backward},
    {"aten::_embedding_bag_dense_backward", embedding_bag_backward},
    {"aten::_embedding_bag_per_sample_weights_backward", embedding_bag_weights_backward},
    {"aten::_embedding_bag", embedding_bag<true>},
    {"aten::_embedding_bag_forward_only", embedding_bag<false>},
    {"aten::_embedding_bag_backward", embedding_bag_any_backward},
    {"aten::index_select", index_select},
    {"aten::index_add", rows_changed},
    {"aten::index_reduce", rows_changed},
    {"aten::masked_scatter_backward", masked_scatter_backward},
    {"aten::randperm", permutation<1>},
    {"aten::randperm.generator", permutation<2>},
    {"aten::flip", flip},
    {"aten::roll", roll},
    {"aten::rot90", rotate},
    {"aten::take", take},
    {"aten::searchsorted.Tensor", places<1, 2>},
    {"aten::searchsorted.Scalar", place},
    {"aten::bucketize.Tensor", places<0, 2>},
    {"aten::bucketize.Scalar", place},
    {"aten::unfold_backward", unfold_backward},
    {"aten::multinomial", multinomial},
    {"aten::segment_reduce", segments},
    {"aten::_segment_reduce_backward", segments_backward},
};

}  // namespace

std::span<const Row> indexing() { return indexing_rows; }

}  // namespace tandem::rules
