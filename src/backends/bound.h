/// Arguments and results of kernels in the C++ types in which these take and give them.
#pragma once

#include "backends/calls.h"
#include "graph/vocabulary.h"

#include <array>

namespace tandem {

/// Adds a schema's type to a text, a letter for each kind: writing types out as schemas do takes longer than
/// making the calls of a graph.
inline void add_code(std::string& to, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      return add_code(to += '?', *without_optional(&type));
    case c10::TypeKind::ListType:
      return add_code(to += '[', *element_type(&type));
    case c10::TypeKind::TensorType:
      to += 't';
      return;
    case c10::TypeKind::BoolType:
      to += 'b';
      return;
    case c10::TypeKind::IntType:
      to += 'i';
      return;
    case c10::TypeKind::SymIntType:
      to += 'I';
      return;
    case c10::TypeKind::FloatType:
      to += 'f';
      return;
    case c10::TypeKind::NumberType:
      to += 'n';
      return;
    case c10::TypeKind::ScalarTypeType:
      to += 'd';
      return;
    case c10::TypeKind::MemoryFormatType:
      to += 'm';
      return;
    case c10::TypeKind::StringType:
      to += 's';
      return;
    default:
      to += '-';  // of no row
  }
}

/// Keeps one argument ready in the form in which the kernel takes it. `schema` is the argument's type as
/// `add_code` writes it.
template <class Argument>
struct Bound;

template <>
struct Bound<const at::Tensor&> {
  static constexpr const char* schema = "t";
  TensorSlot slot;
  explicit Bound(const ArgumentSlot& argument) : slot(std::get<TensorSlot>(argument)) {}
  const at::Tensor& get(at::Tensor* registers) const { return slot.peek(registers); }
  void release(at::Tensor* registers) const { slot.release(registers); }
};

template <>
struct Bound<const std::optional<at::Tensor>&> {
  static constexpr const char* schema = "?t";
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
  static constexpr const char* schema = "b";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<int64_t> : BoundConstant<int64_t> {
  static constexpr const char* schema = "i";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<double> : BoundConstant<double> {
  static constexpr const char* schema = "f";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<const at::Scalar&> : BoundConstant<const at::Scalar&> {
  static constexpr const char* schema = "n";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<at::ScalarType> : BoundConstant<at::ScalarType> {
  static constexpr const char* schema = "d";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<std::optional<at::ScalarType>> : BoundConstant<std::optional<at::ScalarType>> {
  static constexpr const char* schema = "?d";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<std::optional<at::MemoryFormat>> : BoundConstant<std::optional<at::MemoryFormat>> {
  static constexpr const char* schema = "?m";
  using BoundConstant::BoundConstant;
};

template <>
struct Bound<c10::SymInt> : BoundConstant<c10::SymInt, int64_t> {
  static constexpr const char* schema = "I";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<std::optional<c10::SymInt>> : BoundConstant<std::optional<c10::SymInt>, std::optional<int64_t>> {
  static constexpr const char* schema = "?I";
  using BoundConstant::BoundConstant;
};

template <>
struct Bound<c10::string_view> : BoundConstant<c10::string_view, std::string> {
  static constexpr const char* schema = "s";
  using BoundConstant::BoundConstant;
};

template <>
struct Bound<at::IntArrayRef> : BoundConstant<at::IntArrayRef, std::vector<int64_t>> {
  static constexpr const char* schema = "[i";
  using BoundConstant::BoundConstant;
};
template <>
struct Bound<c10::SymIntArrayRef> : BoundConstant<c10::SymIntArrayRef, std::vector<int64_t>> {
  static constexpr const char* schema = "[I";
  using BoundConstant::BoundConstant;
  c10::SymIntArrayRef get(at::Tensor*) const { return c10::fromIntArrayRefKnownNonNegative(kept); }
};
template <>
struct Bound<at::OptionalIntArrayRef>
    : BoundConstant<at::OptionalIntArrayRef, std::optional<std::vector<int64_t>>> {
  static constexpr const char* schema = "?[i";
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
  static constexpr const char* schema = "t";
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
  static constexpr const char* schema = "tt";
  using StoredSeveral::StoredSeveral;
};
template <>
struct Stored<std::tuple<at::Tensor, at::Tensor, at::Tensor>> : StoredSeveral<3> {
  static constexpr const char* schema = "ttt";
  using StoredSeveral::StoredSeveral;
};

}  // namespace tandem
