/// Arguments and results of kernels in the C++ types in which these take and give them.
#pragma once

#include "backends/calls.h"

#include <array>

namespace tandem {

/// Keeps one argument ready in the form in which the kernel takes it. `schema` is the argument's type as
/// schemas spell it.
template <class Argument>
struct Bound;

template <>
struct Bound<const at::Tensor&> {
  static constexpr const char* schema = "Tensor";
  TensorSlot slot;
  explicit Bound(const ArgumentSlot& argument) : slot(std::get<TensorSlot>(argument)) {}
  const at::Tensor& get(at::Tensor* registers) const { return slot.peek(registers); }
  void release(at::Tensor* registers) const { slot.release(registers); }
};

template <>
struct Bound<const std::optional<at::Tensor>&> {
  static constexpr const char* schema = "Tensor?";
  TensorSlot slot;
  explicit Bound(const ArgumentSlot& argument) {
    if (auto* tensor = std::get_if<TensorSlot>(&argument)) slot = *tensor;
  }
  std::optional<at::Tensor> get(at::Tensor* registers) const {
    const at::Tensor& tensor = slot.peek(registers);
    return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
  }
  void release(at::Tensor* registers) const { slot.release(registers); }
};

/// An argument that is known ahead, kept as `Kept` and passed as `Argument`.
template <class Argument, class Kept = std::remove_cvref_t<Argument>>
struct BoundConstant {
  Kept kept;
  explicit BoundConstant(const ArgumentSlot& argument) : kept(std::get<c10::IValue>(argument).to<Kept>()) {}
  const Kept& get(at::Tensor*) const { return kept; }
  void release(at::Tensor*) const {}
};

template <>
struct Bound<bool> : BoundConstant<bool> {
  static constexpr const char* schema = "bool";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<int64_t> : BoundConstant<int64_t> {
  static constexpr const char* schema = "int";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<double> : BoundConstant<double> {
  static constexpr const char* schema = "float";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<const at::Scalar&> : BoundConstant<const at::Scalar&> {
  static constexpr const char* schema = "Scalar";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<at::ScalarType> : BoundConstant<at::ScalarType> {
  static constexpr const char* schema = "ScalarType";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<std::optional<at::ScalarType>> : BoundConstant<std::optional<at::ScalarType>> {
  static constexpr const char* schema = "ScalarType?";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<std::optional<at::MemoryFormat>> : BoundConstant<std::optional<at::MemoryFormat>> {
  static constexpr const char* schema = "MemoryFormat?";
  using BoundConstant::BoundConstant;
};

template <>
struct Bound<c10::SymInt> : BoundConstant<c10::SymInt, int64_t> {
  static constexpr const char* schema = "SymInt";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<std::optional<c10::SymInt>> : BoundConstant<std::optional<c10::SymInt>, std::optional<int64_t>> {
  static constexpr const char* schema = "SymInt?";
  using BoundConstant::BoundConstant;
};

template <>
struct Bound<c10::string_view> : BoundConstant<c10::string_view, std::string> {
  static constexpr const char* schema = "str";
  using BoundConstant::BoundConstant;
};

template <>
struct Bound<at::IntArrayRef> : BoundConstant<at::IntArrayRef, std::vector<int64_t>> {
  static constexpr const char* schema = "int[]";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<c10::SymIntArrayRef> : BoundConstant<c10::SymIntArrayRef, std::vector<int64_t>> {
  static constexpr const char* schema = "SymInt[]";
  using BoundConstant::BoundConstant;
  c10::SymIntArrayRef get(at::Tensor*) const { return c10::fromIntArrayRefKnownNonNegative(kept); }
};
template <>
struct Bound<at::OptionalIntArrayRef>
    : BoundConstant<at::OptionalIntArrayRef, std::optional<std::vector<int64_t>>> {
  static constexpr const char* schema = "int[]?";
  using BoundConstant::BoundConstant;
  at::OptionalIntArrayRef get(at::Tensor*) const {
    return kept ? at::OptionalIntArrayRef(*kept) : std::nullopt;
  }
};

/// Puts a kernel's result where later calls look for it.
template <class Return>
struct Stored;

template <>
struct Stored<at::Tensor> {
  static constexpr const char* schema = "Tensor, ";
  int32_t index;
  explicit Stored(const std::vector<ResultSlot>& results) : index(std::get<int32_t>(results[0])) {}
  void put(at::Tensor&& result, at::Tensor* registers) const {
    if (index >= 0) registers[index] = std::move(result);
  }
};

template <size_t Count>
struct StoredSeveral {
  std::array<int32_t, Count> indices;
  explicit StoredSeveral(const std::vector<ResultSlot>& results) {
    for (size_t i = 0; i < Count; ++i) indices[i] = std::get<int32_t>(results[i]);
  }
  template <class Tuple>
  void put(Tuple&& result, at::Tensor* registers) const {
    put_each(result, registers, std::make_index_sequence<Count>());
  }

 private:
  template <class Tuple, size_t... I>
  void put_each(Tuple& result, at::Tensor* registers, std::index_sequence<I...>) const {
    ((indices[I] >= 0 ? void(registers[indices[I]] = std::move(std::get<I>(result))) : void()), ...);
  }
};

template <>
struct Stored<std::tuple<at::Tensor, at::Tensor>> : StoredSeveral<2> {
  static constexpr const char* schema = "Tensor, Tensor, ";
  using StoredSeveral::StoredSeveral;
};
template <>
struct Stored<std::tuple<at::Tensor, at::Tensor, at::Tensor>> : StoredSeveral<3> {
  static constexpr const char* schema = "Tensor, Tensor, Tensor, ";
  using StoredSeveral::StoredSeveral;
};

}  // namespace tandem
