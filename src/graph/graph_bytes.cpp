#include "graph/graph_bytes.h"

#include <tandem/error.h>

#include <unordered_map>

#include "graph/constant_bytes.h"
#include "graph/vocabulary.h"
#include "ops/facts.h"

namespace tandem {
namespace {

constexpr size_t least_meta = 2, least_node = 8, least_constant = 10;  ///< bytes of the shortest

class GraphWriter {
 public:
  explicit GraphWriter(const Graph& graph) : graph_(graph) {}

  std::string write() {
    writer_.number(graph_.value_count());
    for (size_t id = 0; id < graph_.value_count(); ++id) meta(graph_.meta(Value{int32_t(id)}));
    write_names();
    writer_.list(graph_.inputs(), [&](Value v) { value(v); });
    writer_.list(graph_.constants(), [&](const auto& constant) {
      value(constant.first);
      if (!constant.second.defined())
        throw Error("the constant %" + graph_.name(constant.first) +
                    " of a graph has no data, so that the graph cannot be kept");
      write_tensor(writer_, constant.second);
    });
    writer_.list(graph_.nodes(), [&](const Node& n) { node(n); });
    writer_.list(graph_.outputs(), [&](Value v) { value(v); });
    return writer_.take();
  }

 private:
  void write_names() {
    std::vector<std::pair<size_t, std::string>> named;
    for (size_t id = 0; id < graph_.value_count(); ++id)
      if (std::string name = graph_.name(Value{int32_t(id)}); name != std::to_string(id))
        named.emplace_back(id, std::move(name));
    writer_.list(named, [&](const auto& entry) {
      writer_.number(entry.first);
      writer_.text(entry.second);
    });
  }

  /// That nothing is known takes two bytes, so that those who read need room in proportion to the bytes.
  void meta(const TensorMeta& meta) {
    const bool known = meta != TensorMeta();
    writer_.byte(known);
    known ? write_meta(writer_, meta) : writer_.byte(0);
  }

  void value(Value v) { writer_.number(uint64_t(v.id + 1)); }

  void node(const Node& node) {
    write_operator(node.op);
    writer_.byte(uint8_t(node.phase));
    writer_.list(node.arguments, [&](const Operand& o) { operand(node, o); });
    writer_.list(node.results, [&](const Operand& o) { operand(node, o); });
    writer_.list(node.writes, [&](const auto& write) {
      value(write.first);
      value(write.second);
    });
    value(node.state);
    value(node.next_state);
    writer_.text(node.location);
  }

  /// By number; the first time its name follows.
  void write_operator(const c10::OperatorHandle& op) {
    const auto [known, first] = operators_.emplace(op.operator_name(), operators_.size());
    writer_.number(known->second);
    if (!first) return;
    writer_.text(op.operator_name().name);
    writer_.text(op.operator_name().overload_name);
  }

  void operand(const Node& node, const Operand& operand) {
    writer_.byte(uint8_t(operand.index()));
    if (auto* one = std::get_if<Value>(&operand)) return value(*one);
    if (auto* many = std::get_if<std::vector<Value>>(&operand))
      return writer_.list(*many, [&](Value v) { value(v); });
    try {
      write_constant(writer_, std::get<c10::IValue>(operand));
    } catch (const Error& error) {
      throw Error("a call of " + full_name(node.op) + (node.location.empty() ? "" : " at " + node.location) +
                  " cannot be kept: " + error.what());
    }
  }

  const Graph& graph_;
  ByteWriter writer_;
  std::unordered_map<c10::OperatorName, size_t> operators_;
};

class GraphReader {
 public:
  explicit GraphReader(std::string_view bytes) : reader_(bytes) {}

  Graph read() {
    const size_t count = reader_.count(least_meta);
    graph_.reserve_values(count);
    for (size_t i = 0; i < count; ++i) graph_.add_value(reader_.flag() ? read_meta(reader_) : no_meta());
    read_names();
    graph_.set_inputs(values());
    reader_.list(least_constant, [&] {
      const Value v = value();
      graph_.constants().emplace_back(v, read_tensor(reader_));
    });
    const size_t nodes = reader_.count(least_node);
    graph_.nodes().reserve(nodes);
    for (size_t i = 0; i < nodes; ++i) graph_.add_node(node());
    graph_.set_outputs(values());
    reader_.expect_end();
    graph_.verify();
    return std::move(graph_);
  }

 private:
  /// In ascending order, so that each is put at the end.
  void read_names() {
    uint64_t next = 0;
    reader_.list(2, [&] {
      const uint64_t id = reader_.number_below(graph_.value_count(), "value");
      if (id < next) reader_.refuse("the names of values are in disorder");
      next = id + 1;
      graph_.set_name(Value{int32_t(id)}, std::string(reader_.text()));
    });
  }

  TensorMeta no_meta() {
    reader_.byte_below(1, "property of nothing");
    return {};
  }

  Value value() { return Value{int32_t(reader_.number_below(graph_.value_count() + 1, "value")) - 1}; }

  std::vector<Value> values() {
    std::vector<Value> values(reader_.count(1));
    for (Value& v : values) v = value();
    return values;
  }

  Node node() {
    Node node{read_operator(), {}, {}, {}, Phase::Forward, {}};
    node.phase = Phase(reader_.byte_below(2, "phase"));
    node.arguments = operands();
    check_enumerators(node);
    node.results = operands();
    reader_.list(2, [&] {
      const Value before = value();
      node.writes.emplace_back(before, value());
    });
    node.state = value();
    node.next_state = value();
    node.location = reader_.text();
    return node;
  }

  c10::OperatorHandle read_operator() {
    const uint64_t known = reader_.number_below(operators_.size() + 1, "operator");
    if (known < operators_.size()) return operators_[known];
    const std::string name(reader_.text());
    const c10::OperatorName full(name, std::string(reader_.text()));
    const auto op = c10::Dispatcher::singleton().findSchema(full);
    if (!op)
      reader_.refuse("there is no operator " + in_quotes(toString(full)) +
                     "; load the library that registers it");
    operators_.push_back(*op);
    return *op;
  }

  std::vector<Operand> operands() {
    std::vector<Operand> operands(reader_.count(2));
    for (Operand& o : operands) o = operand();
    return operands;
  }

  Operand operand() {
    switch (reader_.byte_below(std::variant_size_v<Operand>, "kind of operand")) {
      case 0:
        return value();
      case 1:
        return values();
      default:
        return read_constant(reader_);
    }
  }

  /// To a kernel a dtype, a layout or a memory format is any number that its schema calls so.
  void check_enumerators(const Node& node) const {
    const auto& declared = node.op.schema().arguments();
    for (size_t i = 0; i < std::min(declared.size(), node.arguments.size()); ++i) {
      const auto* constant = std::get_if<c10::IValue>(&node.arguments[i]);
      if (constant && constant->isInt() && is_enumerator_type(declared[i].real_type().get()) &&
          !enumerator_word(declared[i].real_type().get(), constant->toInt()))
        reader_.refuse("the argument '" + declared[i].name() + "' of " + full_name(node.op) + " is " +
                       std::to_string(constant->toInt()) + ", which means nothing");
    }
  }

  static bool is_enumerator_type(const c10::Type* type) {
    const c10::TypeKind kind = without_optional(type)->kind();
    return kind == c10::TypeKind::ScalarTypeType || kind == c10::TypeKind::LayoutType ||
           kind == c10::TypeKind::MemoryFormatType;
  }

  ByteReader reader_;
  Graph graph_;
  std::vector<c10::OperatorHandle> operators_;
};

}  // namespace

std::string encode_graph(const Graph& graph) { return GraphWriter(graph).write(); }

Graph decode_graph(std::string_view bytes) { return GraphReader(bytes).read(); }

}  // namespace tandem
