#include "backends/calls.h"
#include "graph/boxing.h"

#include <array>
#include <mutex>

namespace tandem {
namespace {

/// Keeps one argument ready in the form in which the kernel takes it. `schema` is the argument's type as schemas spell it.
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
struct Bound<at::OptionalIntArrayRef> : BoundConstant<at::OptionalIntArrayRef, std::optional<std::vector<int64_t>>> {
  static constexpr const char* schema = "int[]?";
  using BoundConstant::BoundConstant;
  at::OptionalIntArrayRef get(at::Tensor*) const { return kept ? at::OptionalIntArrayRef(*kept) : std::nullopt; }
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

template <class Signature>
class UnboxedCall;

template <class Return, class... Arguments>
class UnboxedCall<Return(Arguments...)> final : public Call {
 public:
  explicit UnboxedCall(const CallSite& site) : UnboxedCall(site, std::index_sequence_for<Arguments...>()) {}

  void run(at::Tensor* registers, torch::jit::Stack&) const override { run(registers, std::index_sequence_for<Arguments...>()); }

 private:
  template <size_t... I>
  UnboxedCall(const CallSite& site, std::index_sequence<I...>)
      : op_(site.op.typed<Return(Arguments...)>()), arguments_(Bound<Arguments>(site.arguments[I])...), result_(site.results) {}

  template <size_t... I>
  void run(at::Tensor* registers, std::index_sequence<I...>) const {
    Return result = op_.call(std::get<I>(arguments_).get(registers)...);
    (std::get<I>(arguments_).release(registers), ...);
    result_.put(std::move(result), registers);
  }

  c10::TypedOperatorHandle<Return(Arguments...)> op_;
  std::tuple<Bound<Arguments>...> arguments_;
  Stored<Return> result_;
};

using Make = std::unique_ptr<Call> (*)(const CallSite&);

struct Row {
  Make make;
  bool (*fits)(const c10::OperatorHandle&);
};
using Rows = std::unordered_map<std::string, Row>;

/// Schemas spell some C++ types alike (a dimension's name is a "str" too); libtorch knows with which the kernels were registered, and throws.
template <class Signature>
bool fits(const c10::OperatorHandle& op) {
  try {
    op.typed<Signature>();
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

template <class Return, class... Arguments>
void add_row(Rows& rows, Return (*)(Arguments...)) {
  std::string key;
  ((key += Bound<Arguments>::schema, key += ", "), ...);
  Make make = [](const CallSite& site) -> std::unique_ptr<Call> { return std::make_unique<UnboxedCall<Return(Arguments...)>>(site); };
  rows.emplace(key + "-> " + Stored<Return>::schema, Row{make, fits<Return(Arguments...)>});
}

template <class... Signatures>
Rows rows_for() {
  Rows rows;
  (add_row(rows, static_cast<Signatures*>(nullptr)), ...);
  return rows;
}

using at::Scalar;
using at::ScalarType;
using at::Tensor;
using c10::SymInt;
using Sizes = c10::SymIntArrayRef;
using Maybe = std::optional<Tensor>;
using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

/// The signatures of the operators that models are mostly made of; whatever has another goes boxed.
const Rows& rows() {
  static const Rows table = rows_for<
      Tensor(const Tensor&),                                                                         // tanh, relu, t
      Tensor(const Tensor&, const Tensor&),                                                          // mul, mm, tanh_backward
      Tensor(const Tensor&, const Tensor&, const Tensor&),                                           // where
      Tensor(const Tensor&, const Scalar&),                                                          // mul.Scalar, pow, eq
      Tensor(const Tensor&, const Scalar&, const Scalar&),                                           // add.Scalar
      Tensor(const Tensor&, const Tensor&, const Scalar&),                                           // add, threshold_backward
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&),                            // addcmul
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&),             // addmm, baddbmm
      Tensor(const Tensor&, Sizes),                                                                  // view, repeat
      Tensor(const Tensor&, Sizes, bool),                                                            // expand
      Tensor(const Tensor&, Sizes, Sizes, std::optional<SymInt>),                                    // as_strided
      Tensor(const Tensor&, at::IntArrayRef),                                                        // permute
      Tensor(const Tensor&, int64_t),                                                                // unsqueeze, squeeze.dim
      Tensor(const Tensor&, int64_t, int64_t),                                                       // transpose
      Tensor(const Tensor&, int64_t, SymInt),                                                        // select
      Tensor(const Tensor&, int64_t, std::optional<SymInt>, std::optional<SymInt>, SymInt),          // slice
      Tensor(const Tensor&, Sizes, int64_t, SymInt),                                                 // select_backward
      Tensor(const Tensor&, Sizes, int64_t, SymInt, SymInt, SymInt),                                 // slice_backward
      Tensor(const Tensor&, int64_t, bool),                                                          // softmax, log_softmax
      Tensor(const Tensor&, const Tensor&, int64_t, ScalarType),                                     // softmax_backward
      Tensor(const Tensor&, std::optional<ScalarType>),                                              // sum, mean
      Tensor(const Tensor&, std::optional<at::MemoryFormat>),                                        // clone
      Tensor(const Tensor&, at::OptionalIntArrayRef, bool, std::optional<ScalarType>),               // sum.dim, mean.dim
      Tensor(const Tensor&, c10::string_view),                                                       // gelu
      Tensor(const Tensor&, const Tensor&, c10::string_view),                                        // gelu_backward
      Tensor(const Tensor&, const Tensor&, SymInt, bool, bool),                                      // embedding
      Tensor(const Tensor&, const Tensor&, SymInt, SymInt, bool),                                    // embedding_dense_backward
      Tensor(const Tensor&, const Tensor&, const Maybe&, Sizes, Sizes, Sizes, bool, Sizes, SymInt),  // convolution
      Pair(const Tensor&, const Tensor&, const Maybe&, int64_t, SymInt),                             // nll_loss_forward
      Triple(const Tensor&, Sizes, const Maybe&, const Maybe&, double),                              // native_layer_norm
      Triple(const Tensor&, const Maybe&, const Maybe&, const Maybe&, const Maybe&, bool, double, double)>();   // native_batch_norm
  return table;
}

std::string signature_of(const c10::FunctionSchema& schema) {
  std::string key;
  for (const c10::Argument& argument : schema.arguments()) (key += argument.real_type()->str()) += ", ";
  key += "-> ";
  for (const c10::Argument& result : schema.returns()) (key += result.real_type()->str()) += ", ";
  return key;
}

/// The row of an operator, found once: spelling a schema's types costs more than making the call.
Make find_row(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static std::unordered_map<c10::OperatorName, Make> found;
  std::lock_guard lock(mutex);
  auto [place, is_new] = found.emplace(op.operator_name(), nullptr);
  if (!is_new) return place->second;
  if (auto row = rows().find(signature_of(op.schema())); row != rows().end() && row->second.fits(op)) place->second = row->second.make;
  return place->second;
}

}  // namespace

std::unique_ptr<Call> make_unboxed_call(const CallSite& site) {
  const c10::FunctionSchema& schema = site.op.schema();
  // Only ATen's own operators are known to have the C++ types that code generation derives from their schemas.
  if (!site.writes.empty() || schema.is_mutable() || !std::string_view(schema.name()).starts_with("aten::")) return nullptr;
  for (size_t i = 0; i < site.arguments.size(); ++i)
    if (!std::holds_alternative<c10::IValue>(site.arguments[i]) && is_number(*schema.arguments()[i].type())) return nullptr;
  if (Make make = find_row(site.op)) return make(site);
  return nullptr;
}

}  // namespace tandem
