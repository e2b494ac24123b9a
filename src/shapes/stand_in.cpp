#include "shapes/stand_in.h"

#include "base/counters.h"
#include "base/generators.h"
#include "base/log.h"
#include "base/verdicts.h"
#include "ops/facts.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <tandem/error.h>

#include <mutex>
#include <set>

namespace tandem {
namespace {

std::mutex fallback_mutex;
std::set<std::string>& fallbacks() {
  static auto* names = new std::set<std::string>;
  return *names;
}

void remember(const c10::OperatorHandle& op) {
  count("fallback_shapes");
  std::string name = full_name(op);
  if (logs("trace")) log("trace", "shapes of " + name + " found by running it on stand-in data");
  std::lock_guard lock(fallback_mutex);
  fallbacks().insert(std::move(name));
}

/// Every generator that a kernel may draw from.
void keep_generators(GeneratorsKept& kept, c10::Device device, const torch::jit::Stack& stack) {
  kept.keep(at::detail::getDefaultCPUGenerator());
  if (!device.is_cpu() && !device.is_meta()) kept.keep(at::globalContext().defaultGenerator(device));
  for (const c10::IValue& argument : stack)
    if (argument.isGenerator()) kept.keep(argument.toGenerator());
}

/// Visits every tensor among arguments or results, in lists too, and puts what `map` returns in its place.
template <class Map>
void map_tensors(c10::IValue& value, Map&& map) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) value = map(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> mapped;
    for (const at::Tensor& tensor : value.toTensorVector())
      mapped.push_back(tensor.defined() ? map(tensor) : tensor);
    value = std::move(mapped);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> mapped;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      mapped.push_back(tensor && tensor->defined() ? std::optional(map(*tensor)) : tensor);
    value = std::move(mapped);
  }
}

/// Real tensors in the place of metas. Values are chosen so that kernels that look at them succeed:
/// well-conditioned matrices, indices that exist.
class StandIns {
 public:
  explicit StandIns(c10::Device device) : device_(device) {}

  void measure(const at::Tensor& meta) {
    if (!meta.is_meta()) return;
    size_t bytes = at::detail::computeStorageNbytes(meta.sizes(), meta.strides(), meta.itemsize(),
                                                    meta.storage_offset());
    size_t& room = memory_[meta.storage().unsafeGetStorageImpl()].bytes;
    room = std::max({room, bytes, meta.storage().nbytes()});
  }

  at::Tensor real(const at::Tensor& meta) {
    if (!meta.is_meta()) return meta;
    for (const auto& [known, stand_in] : pairs_)
      if (known.is_same(meta)) return stand_in;
    Memory& memory = memory_.at(meta.storage().unsafeGetStorageImpl());
    bool first = !memory.real;
    if (first) memory.real = fill(memory.bytes, meta.scalar_type());
    at::Tensor tensor = at::empty({0}, options(meta.scalar_type()));
    tensor.set_(memory.real, meta.storage_offset(), meta.sizes(), meta.strides());
    if (first) make_well_conditioned(tensor);
    if (meta.is_conj()) tensor._set_conj(true);
    if (meta.is_neg()) tensor._set_neg(true);
    pairs_.emplace_back(meta, tensor);
    return tensor;
  }

  at::Tensor meta(const at::Tensor& real) {
    if (real.layout() != at::kStrided) throw RunEagerly("a result has the layout " + c10::str(real.layout()));
    for (const auto& [meta, stand_in] : pairs_)
      if (stand_in.is_same(real)) return meta;
    TensorMeta geometry = describe(real, c10::kMeta);
    at::Tensor made = make_meta(geometry);
    for (const auto& [meta, stand_in] : pairs_)
      if (stand_in.storage().is_alias_of(real.storage()))
        made.unsafeGetTensorImpl()->set_storage_keep_dtype(meta.storage());
    return made;
  }

  /// Arguments whose sizes, strides or offset the kernel changed change on meta too.
  void take_over_geometry() {
    for (auto& [meta, real] : pairs_) {
      if (meta.sizes() == real.sizes() && meta.strides() == real.strides() &&
          meta.storage_offset() == real.storage_offset())
        continue;
      meta.unsafeGetTensorImpl()->set_sizes_and_strides(real.sizes(), real.strides(), real.storage_offset());
      if (meta.storage().nbytes() < real.storage().nbytes())
        meta.storage().unsafeGetStorageImpl()->set_nbytes(real.storage().nbytes());
    }
  }

 private:
  struct Memory {
    size_t bytes = 0;
    c10::Storage real;
  };

  at::TensorOptions options(at::ScalarType dtype) const {
    return at::TensorOptions().dtype(dtype).device(device_);
  }

  c10::Storage fill(size_t bytes, at::ScalarType dtype) const {
    auto count = int64_t((bytes + c10::elementSize(dtype) - 1) / c10::elementSize(dtype));
    bool indices = c10::isIntegralType(dtype, /*includeBool=*/false);
    return (indices ? at::zeros({count}, options(dtype)) : at::ones({count}, options(dtype))).storage();
  }

  static void make_well_conditioned(const at::Tensor& tensor) {
    bool matrices = tensor.dim() >= 2 && tensor.size(-1) == tensor.size(-2) &&
                    (tensor.is_floating_point() || tensor.is_complex());
    if (matrices && tensor.is_non_overlapping_and_dense())
      tensor.diagonal(0, -2, -1).fill_(double(tensor.size(-1) + 1));
  }

  c10::Device device_;
  std::unordered_map<c10::StorageImpl*, Memory> memory_;
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

}  // namespace

Devices run_on_stand_ins(const c10::OperatorHandle& op, c10::Device device, torch::jit::Stack& stack) {
  remember(op);
  GeneratorsKept generators;
  keep_generators(generators, device, stack);
  StandIns stand_ins(device);
  for (c10::IValue& argument : stack)
    map_tensors(argument, [&](const at::Tensor& t) { return stand_ins.measure(t), t; });
  for (c10::IValue& argument : stack)
    map_tensors(argument, [&](const at::Tensor& t) { return stand_ins.real(t); });
  op.callBoxed(stack);
  stand_ins.take_over_geometry();
  Devices devices(stack.size(), device);
  for (size_t i = 0; i < stack.size(); ++i)
    map_tensors(stack[i], [&](const at::Tensor& t) { return devices[i] = t.device(), stand_ins.meta(t); });
  return devices;
}

std::vector<std::string> fallback_operators() {
  std::lock_guard lock(fallback_mutex);
  return {fallbacks().begin(), fallbacks().end()};
}

}  // namespace tandem
