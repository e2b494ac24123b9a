/// What the shape rules are made of.
#pragma once

#include "shapes/rules/rules.h"

#include <initializer_list>

namespace tandem::rules {

/// What `empty_like` gives: the strides of a dense tensor, else dense strides in the same order.
at::Tensor like(const at::Tensor& tensor, at::ScalarType dtype);
inline at::Tensor like(const at::Tensor& tensor) { return like(tensor, tensor.scalar_type()); }
inline at::Tensor contiguous_like(const at::Tensor& tensor) {
  return make_meta(tensor.sizes(), tensor.scalar_type());
}
inline at::Tensor scalar(at::ScalarType dtype) { return make_meta(at::IntArrayRef{}, dtype); }
/// Dense, in the order of a memory format.
at::Tensor formatted(at::IntArrayRef sizes, at::ScalarType dtype, at::MemoryFormat format);
/// With the sizes of `tensor`, in the format it suggests.
at::Tensor suggested_like(const at::Tensor& tensor);
/// Matrices stored by columns, as LAPACK wants them.
at::Tensor column_major(at::IntArrayRef sizes, at::ScalarType dtype);

using Inputs = std::initializer_list<const at::Tensor*>;
/// What TensorIterator allocates for an output of these inputs, broadcast.
at::Tensor iterated(at::ScalarType dtype, Inputs inputs);
at::Tensor iterated(at::ScalarType dtype, at::ArrayRef<at::Tensor> inputs);
/// The same where the kernel computes in `common`: on the CPU the inputs that need a cast are copied first,
/// and the copies' strides count.
at::Tensor iterated_in(const ShapeCall& call, at::ScalarType common, at::ScalarType dtype, Inputs inputs);
/// The dtype that tensors promote to.
at::ScalarType promoted(Inputs inputs);
at::ScalarType promoted(const at::Tensor& tensor, const at::Scalar& number);
/// Whole numbers become the default floating dtype.
at::ScalarType floating(at::ScalarType dtype);
/// Whole numbers become int64, as sums and products of them do.
at::ScalarType accumulated(at::ScalarType dtype);
/// The dtype in which CUDA keeps statistics of tensors with this one.
at::ScalarType statistics(at::ScalarType dtype);

/// `sizes` without `dims` (none given: all), or with ones in their place.
Dims reduced(at::IntArrayRef sizes, at::IntArrayRef dims, bool keepdim);
/// The integers of an optional list argument; empty for None.
std::vector<int64_t> optional_integers(const ShapeCall& call, size_t argument);
/// A dtype argument, or `otherwise` for None.
at::ScalarType dtype_or(const ShapeCall& call, size_t argument, at::ScalarType otherwise);
/// The bits of a bool[N] argument.
std::vector<bool> mask(const ShapeCall& call, size_t argument);
/// Undefined unless wanted.
inline at::Tensor when(bool wanted, at::Tensor tensor) { return wanted ? std::move(tensor) : at::Tensor(); }

}  // namespace tandem::rules
