// The text of a graph. Its grammar, which parse.cpp reads:
//
//   graph(%x#0: f32[3, 4] storage 0 cpu grad, %1: …) {    a value is %id, or %name#id where it has a name
//     constant %7: f64[] storage 2 cpu wrapped = 0x0000000000000840
//     %5: f32[3, 4] storage 5 cpu = aten::add.Tensor(%x#0, %1, alpha=1) [backward] @ "model.cpp:3"
//     [%8: …, %9: …] = aten::split.Tensor(%5, 2, 0)
//     %11: … = aten::add_.Tensor(%10, %5, alpha=1) writes (%10 -> %11)
//     %14: … = aten::bernoulli(%5, generator=none) draws (%12 -> %13: …)    the states before and behind it
//     return (%5, none)
//   }
//
// A meta says its strides, offset and storage only where they are not dense, 0 and unknown.
#include <tandem/graph.h>

#include "graph/bytes.h"
#include "graph/vocabulary.h"
#include "ops/facts.h"

namespace tandem {
namespace {

std::string join(const auto& items, auto&& show) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += show(item);
  }
  return text;
}

std::string show(const TensorMeta& meta) {
  std::string text = dtype_word(meta.dtype) + dims_word(meta.sizes);
  if (meta.strides != dense_strides(meta.sizes)) text += " strides " + dims_word(meta.strides);
  if (meta.offset != 0) text += " offset " + std::to_string(meta.offset);
  if (meta.storage != -1) text += " storage " + std::to_string(meta.storage);
  text += ' ' + meta.device.str();
  if (meta.requires_grad) text += " grad";
  if (meta.conj) text += " conj";
  if (meta.neg) text += " neg";
  return text;
}

/// The number inside a wrapped number, without the dispatcher; none for dtypes that ATen does not wrap.
std::optional<at::Scalar> wrapped_scalar(const at::Tensor& tensor) {
  if (!tensor.unsafeGetTensorImpl()->is_wrapped_number() || !tensor.device().is_cpu() || tensor.dim() != 0)
    return std::nullopt;
  const void* data = tensor.const_data_ptr();
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return at::Scalar(*static_cast<const double*>(data));
    case at::kLong:
      return at::Scalar(*static_cast<const int64_t*>(data));
    case at::kBool:
      return at::Scalar(*static_cast<const bool*>(data));
    case at::kComplexDouble:
      return at::Scalar(*static_cast<const c10::complex<double>*>(data));
    default:
      return std::nullopt;
  }
}

std::string opaque(const c10::IValue& value) { return '<' + value.tagKind() + '>'; }

/// `type` is what the schema declares, or null where it says nothing.
std::string show(const c10::IValue& value, const c10::Type* type) {
  if (value.isNone()) return "none";
  if (value.isTensor()) {
    if (!value.toTensor().defined()) return "none";
    auto scalar = wrapped_scalar(value.toTensor());
    return scalar ? "number(" + scalar_word(*scalar) + ": " + dtype_word(value.toTensor().scalar_type()) + ")"
                  : opaque(value);
  }
  if (value.isInt())
    if (auto word = enumerator_word(type, value.toInt())) return *word;
  if (auto number = number_in(value)) return scalar_word(*number);
  if (value.isString()) return in_quotes(value.toStringRef());
  if (value.isDevice()) return "device(" + value.toDevice().str() + ")";
  if (value.isGenerator())
    return value.toGenerator().defined() ? "generator(" + value.toGenerator().device().str() + ")" : "none";
  if (value.isList()) {
    const c10::Type* element = element_type(type);
    return '[' + join(value.toListRef(), [&](const c10::IValue& item) { return show(item, element); }) + ']';
  }
  return opaque(value);
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string inputs() const {
    return join(graph_.inputs(), [&](Value v) { return definition(v); });
  }

  std::string constant(Value value, const at::Tensor& data) const {
    std::string text = "constant " + definition(value);
    if (!data.defined()) return text + " = none";
    if (data.unsafeGetTensorImpl()->is_wrapped_number()) text += " wrapped";
    return text + " = 0x" + to_hex(element_bytes(data));
  }

  std::string node(const Node& node) const {
    std::vector<Value> known;
    for_each_argument(node, [&](Value v) { known.push_back(v); });
    auto define = [&](Value v) {
      if (std::find(known.begin(), known.end(), v) != known.end()) return reference(v);
      known.push_back(v);
      return definition(v);
    };

    std::string text;
    if (!node.results.empty())
      text = join(node.results, [&](const Operand& r) { return operand(r, nullptr, define); }) + " = ";
    text += full_name(node.op) + '(' + arguments(node) + ')';
    if (!node.writes.empty())
      text +=
          " writes (" +
          join(node.writes,
               [&](const auto& write) { return reference(write.first) + " -> " + define(write.second); }) +
          ')';
    if (node.state)
      text += " draws (" + reference(node.state) +
              (node.next_state ? " -> " + definition(node.next_state) : "") + ')';
    if (node.phase == Phase::Backward) text += " [backward]";
    if (!node.location.empty()) text += " @ " + in_quotes(node.location);
    return text;
  }

  std::string outputs() const {
    return "return (" + join(graph_.outputs(), [&](Value v) { return reference(v); }) + ')';
  }

 private:
  std::string reference(Value value) const {
    if (!value) return "none";
    const std::string id = std::to_string(value.id), name = graph_.name(value);
    if (name == id) return '%' + id;
    return '%' + (is_plain_name(name) ? name : in_quotes(name)) + '#' + id;
  }

  std::string definition(Value value) const {
    if (!value) return "none";
    if (size_t(value.id) >= graph_.value_count()) return reference(value) + ": ?";
    return reference(value) + ": " + show(graph_.meta(value));
  }

  std::string arguments(const Node& node) const {
    const auto& declared = node.op.schema().arguments();
    std::string text;
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const c10::Argument* argument = i < declared.size() ? &declared[i] : nullptr;
      if (i > 0) text += ", ";
      if (argument && argument->kwarg_only()) text += argument->name() + '=';
      text += operand(node.arguments[i], argument ? argument->real_type().get() : nullptr,
                      [&](Value v) { return reference(v); });
    }
    return text;
  }

  static std::string operand(const Operand& operand, const c10::Type* type, auto&& show_value) {
    if (auto* value = std::get_if<Value>(&operand)) return *value ? show_value(*value) : "none";
    if (auto* list = std::get_if<std::vector<Value>>(&operand))
      return '[' + join(*list, [&](Value v) { return v ? show_value(v) : std::string("none"); }) + ']';
    return show(std::get<c10::IValue>(operand), type);
  }

  const Graph& graph_;
};

}  // namespace

std::string Graph::to_string() const {
  Printer printer(*this);
  std::string text = "graph(" + printer.inputs() + ") {\n";
  for (const auto& [value, data] : constants_) text += "  " + printer.constant(value, data) + '\n';
  for (const Node& node : nodes_) text += "  " + printer.node(node) + '\n';
  return text + "  " + printer.outputs() + "\n}\n";
}

std::string to_string(const Graph& graph, const Node& node) { return Printer(graph).node(node); }

std::string excerpt(const Graph& graph, size_t index, size_t radius) {
  Printer printer(graph);
  const size_t count = graph.nodes().size();
  const size_t first = index - std::min(index, radius), last = std::min(index + radius, count);
  std::string text;
  for (size_t i = first; i <= last; ++i)
    text +=
        (i == index ? "> " : "  ") + (i < count ? printer.node(graph.nodes()[i]) : printer.outputs()) + '\n';
  return text;
}

}  // namespace tandem
