#include "backends/bound.h"
#include "graph/boxing.h"
#include "ops/by_operator.h"

namespace tandem {
namespace {

template <class Signature>
class UnboxedCall;

template <class Return, class... Arguments>
class UnboxedCall<Return(Arguments...)> final : public Call {
 public:
  explicit UnboxedCall(const CallSite& site) : UnboxedCall(site, std::index_sequence_for<Arguments...>()) {}

  void run(at::Tensor* registers, torch::jit::Stack&) const override {
    run(registers, std::index_sequence_for<Arguments...>());
  }

 private:
  template <size_t... I>
  UnboxedCall(const CallSite& site, std::index_sequence<I...>)
      : op_(site.op.typed<Return(Arguments...)>()),
        arguments_(Bound<Arguments>(site.arguments[I])...),
        result_(site.results) {}

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

/// Schemas spell some C++ types alike (a dimension's name is a "str" too); libtorch knows with which the
/// kernels were registered, and throws.
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
  ((key += Bound<Arguments>::schema), ...);
  Make make = [](const CallSite& site) -> std::unique_ptr<Call> {
    return std::make_unique<UnboxedCall<Return(Arguments...)>>(site);
  };
  rows.emplace(key + '>' + Stored<Return>::schema, Row{make, fits<Return(Arguments...)>});
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
      // tanh, relu, t
      Tensor(const Tensor&),
      // mul, mm, tanh_backward
      Tensor(const Tensor&, const Tensor&),
      // where
      Tensor(const Tensor&, const Tensor&, const Tensor&),
      // mul.Scalar, pow, eq
      Tensor(const Tensor&, const Scalar&),
      // add.Scalar
      Tensor(const Tensor&, const Scalar&, const Scalar&),
      // add, threshold_backward
      Tensor(const Tensor&, const Tensor&, const Scalar&),
      // addcmul
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&),
      // addmm, baddbmm
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&),
      // view, repeat
      Tensor(const Tensor&, Sizes),
      // expand
      Tensor(const Tensor&, Sizes, bool),
      // as_strided
      Tensor(const Tensor&, Sizes, Sizes, std::optional<SymInt>),
      // permute
      Tensor(const Tensor&, at::IntArrayRef),
      // unsqueeze, squeeze.dim
      Tensor(const Tensor&, int64_t),
      // transpose
      Tensor(const Tensor&, int64_t, int64_t),
      // select
      Tensor(const Tensor&, int64_t, SymInt),
      // slice
      Tensor(const Tensor&, int64_t, std::optional<SymInt>, std::optional<SymInt>, SymInt),
      // select_backward
      Tensor(const Tensor&, Sizes, int64_t, SymInt),
      // slice_backward
      Tensor(const Tensor&, Sizes, int64_t, SymInt, SymInt, SymInt),
      // softmax, log_softmax
      Tensor(const Tensor&, int64_t, bool),
      // softmax_backward
      Tensor(const Tensor&, const Tensor&, int64_t, ScalarType),
      // sum, mean
      Tensor(const Tensor&, std::optional<ScalarType>),
      // clone
      Tensor(const Tensor&, std::optional<at::MemoryFormat>),
      // sum.dim, mean.dim
      Tensor(const Tensor&, at::OptionalIntArrayRef, bool, std::optional<ScalarType>),
      // gelu
      Tensor(const Tensor&, c10::string_view),
      // gelu_backward
      Tensor(const Tensor&, const Tensor&, c10::string_view),
      // embedding
      Tensor(const Tensor&, const Tensor&, SymInt, bool, bool),
      // embedding_dense_backward
      Tensor(const Tensor&, const Tensor&, SymInt, SymInt, bool),
      // convolution
      Tensor(const Tensor&, const Tensor&, const Maybe&, Sizes, Sizes, Sizes, bool, Sizes, SymInt),
      // nll_loss_forward
      Pair(const Tensor&, const Tensor&, const Maybe&, int64_t, SymInt),
      // native_layer_norm
      Triple(const Tensor&, Sizes, const Maybe&, const Maybe&, double),
      // native_batch_norm
      Triple(const Tensor&, const Maybe&, const Maybe&, const Maybe&, const Maybe&, bool, double, double)>();
  return table;
}

std::string signature_of(const c10::FunctionSchema& schema) {
  std::string key;
  for (const c10::Argument& argument : schema.arguments()) add_code(key, *argument.real_type());
  key += '>';
  for (const c10::Argument& result : schema.returns()) add_code(key, *result.real_type());
  return key;
}

/// The row of an operator: none for one that writes or has none. Only ATen's own operators are known to have
/// the C++ types that code generation derives from their schemas.
Make find_row(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  if (schema.is_mutable() || !std::string_view(schema.name()).starts_with("aten::")) return nullptr;
  const auto row = rows().find(signature_of(schema));
  return row != rows().end() && row->second.fits(op) ? row->second.make : nullptr;
}

}  // namespace

std::unique_ptr<Call> make_unboxed_call(const CallSite& site) {
  static ByOperator<Make> makes;
  if (!site.writes.empty()) return nullptr;
  const Make make = makes.of(site.op, find_row);
  if (!make) return nullptr;
  const auto& declared = site.op.schema().arguments();
  for (size_t i = 0; i < site.arguments.size(); ++i)
    if (!std::holds_alternative<c10::IValue>(site.arguments[i]) && is_number(*declared[i].type()))
      return nullptr;
  return make(site);
}

}  // namespace tandem
