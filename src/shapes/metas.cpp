// Tensors without data, made of what a graph says about its values, and the other way round.
#include <ATen/EmptyTensor.h>
#include <tandem/error.h>

#include <unordered_map>

#include "graph/vocabulary.h"
#include "ops/by_operator.h"
#include "shapes/shapes.h"

namespace tandem {
namespace {

at::Tensor make_meta_on(c10::Storage storage, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset,
                        at::ScalarType dtype) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::Meta), c10::scalarTypeToTypeMeta(dtype));
  impl->set_sizes_and_strides(sizes, strides, offset);
  return at::Tensor(std::move(impl));
}

c10::Storage make_meta_storage(size_t bytes) {
  static at::Allocator* const allocator = c10::GetAllocator(c10::kMeta);
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                               at::DataPtr(nullptr, c10::kMeta), allocator,
                                               /*resizable=*/true);
}

}  // namespace

at::Tensor make_meta(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype) {
  size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  return make_meta_on(make_meta_storage(bytes), sizes, strides, 0, dtype);
}

at::Tensor make_meta(at::IntArrayRef sizes, at::ScalarType dtype) {
  return make_meta(sizes, dense_strides(sizes), dtype);
}

at::Tensor make_meta(const TensorMeta& meta) {
  size_t bytes =
      at::detail::computeStorageNbytes(meta.sizes, meta.strides, c10::elementSize(meta.dtype), meta.offset);
  at::Tensor tensor =
      make_meta_on(make_meta_storage(bytes), meta.sizes, meta.strides, meta.offset, meta.dtype);
  if (meta.conj) tensor._set_conj(true);
  if (meta.neg) tensor._set_neg(true);
  return tensor;
}

at::Tensor alias_meta(const at::Tensor& meta) {
  auto* impl = meta.unsafeGetTensorImpl();
  return at::Tensor(impl->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

TensorMeta describe(const at::Tensor& meta, c10::Device device) {
  TensorMeta description;
  description.dtype = meta.scalar_type();
  description.device = device;
  description.sizes.assign(meta.sizes().begin(), meta.sizes().end());
  description.strides.assign(meta.strides().begin(), meta.strides().end());
  description.offset = meta.storage_offset();
  description.conj = meta.is_conj();
  description.neg = meta.is_neg();
  return description;
}

c10::OperatorHandle find_op(const std::string& full_name) {
  thread_local std::unordered_map<std::string, c10::OperatorHandle> known;
  thread_local uint64_t gone = 0;
  if (const uint64_t now = operators_gone(); gone != now) {
    known.clear();
    gone = now;
  }
  if (auto op = known.find(full_name); op != known.end()) return op->second;
  size_t dot = full_name.find('.');
  std::string name = full_name.substr(0, dot),
              overload = dot == std::string::npos ? "" : full_name.substr(dot + 1);
  auto op = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!op)
    throw Error("libtorch has no operator " + full_name +
                "; check the spelling and the overload, and that the library that registers it is loaded.");
  return known.emplace(full_name, *op).first->second;
}

}  // namespace tandem
