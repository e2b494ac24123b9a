// Reads what print.cpp writes. The text may come from anywhere: nothing here trusts it, and verify() still
// has to be asked whether the graph makes sense.
#include <tandem/error.h>
#include <tandem/graph.h>

#include <map>

#include "graph/bytes.h"
#include "graph/literal.h"
#include "graph/vocabulary.h"

namespace tandem {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(text), id_limit_(int64_t(text.size()) + spare_ids) {}

  Graph parse() {
    cursor_.expect("graph");
    cursor_.expect("(");
    parse_inputs();
    cursor_.expect("{");
    while (cursor_.accept_word("constant")) parse_constant();
    while (!cursor_.accept_word("return")) parse_node();
    parse_outputs();
    cursor_.expect("}");
    if (!cursor_.at_end()) cursor_.fail("the end");
    for (auto& [id, name] : names_) graph_.set_name(Value{id}, std::move(name));
    return std::move(graph_);
  }

 private:
  /// Metas are kept by id, so that a short text with a huge id would ask for much memory. Dead code leaves
  /// gaps, but rarely this many.
  static constexpr int64_t spare_ids = 1 << 18;

  /// Calls `item()` for each of the things between commas up to `end`.
  void parse_list(std::string_view end, auto&& item) {
    if (cursor_.accept(end)) return;
    do item();
    while (cursor_.accept(","));
    cursor_.expect(end);
  }

  Value reference(Cursor&) {
    cursor_.expect("%");
    std::string name;
    if (cursor_.sees("\""))
      name = cursor_.quoted_string();
    else if (is_plain_name(cursor_.peek_word()))
      name = cursor_.word("a name");
    if (!name.empty()) cursor_.expect("#");
    const int64_t id = cursor_.integer("the number of a value");
    if (id < 0 || id >= id_limit_)
      cursor_.complain("the value %" + std::to_string(id) +
                       " has a number out of all proportion to the text.");
    const Value value{int32_t(id)};
    while (graph_.value_count() <= size_t(id)) graph_.add_value({});
    remember_name(value, std::move(name));
    return value;
  }

  void remember_name(Value value, std::string name) {
    auto [it, first] = names_.emplace(value.id, name);
    if (!first && it->second != name)
      cursor_.complain("the value %" + std::to_string(value.id) + " has two names.");
  }

  Value definition(Cursor& cursor) {
    const Value value = reference(cursor);
    cursor_.expect(":");
    TensorMeta meta = parse_meta();
    if (defined_.size() <= size_t(value.id)) defined_.resize(size_t(value.id) + 1);
    if (defined_[size_t(value.id)] && graph_.meta(value) != meta)
      cursor_.complain("the value %" + std::to_string(value.id) + " is described in two ways.");
    defined_[size_t(value.id)] = true;
    graph_.set_meta(value, std::move(meta));
    return value;
  }

  /// Results and written values: those that the same node also reads are described elsewhere.
  Value definition_or_reference(Cursor& cursor) {
    const Cursor start = cursor_;
    const Value value = reference(cursor);
    if (!cursor_.sees(":")) return value;
    cursor_ = start;
    return definition(cursor);
  }

  Dims parse_integers() {
    Dims dims;
    cursor_.expect("[");
    parse_list("]", [&] { dims.push_back(cursor_.integer("an integer")); });
    return dims;
  }

  TensorMeta parse_meta() {
    TensorMeta meta;
    meta.dtype = read_dtype(cursor_);
    meta.sizes = parse_integers();
    meta.strides = cursor_.accept_word("strides") ? parse_integers() : dense_strides(meta.sizes);
    if (cursor_.accept_word("offset")) meta.offset = cursor_.integer("an offset");
    if (cursor_.accept_word("storage")) meta.storage = parse_storage();
    meta.device = read_device(cursor_);
    meta.requires_grad = cursor_.accept_word("grad");
    meta.conj = cursor_.accept_word("conj");
    meta.neg = cursor_.accept_word("neg");
    return meta;
  }

  int32_t parse_storage() {
    const int64_t storage = cursor_.integer("the number of a storage");
    if (storage < 0 || storage >= most_storages)
      cursor_.complain("the storage " + std::to_string(storage) + " is out of range.");
    return int32_t(storage);
  }

  void parse_inputs() {
    std::vector<Value> inputs;
    parse_list(")", [&] { inputs.push_back(definition(cursor_)); });
    graph_.set_inputs(std::move(inputs));
  }

  void parse_constant() {
    const Value value = definition(cursor_);
    const bool wrapped = cursor_.accept_word("wrapped");
    cursor_.expect("=");
    if (cursor_.accept_word("none")) return void(graph_.constants().emplace_back(value, at::Tensor()));
    const std::string bytes = cursor_.hex_bytes();
    at::Tensor data = make_constant(graph_.meta(value), bytes);
    if (wrapped && data.dim() != 0) cursor_.complain("a wrapped number has dimensions.");
    if (wrapped) data.unsafeGetTensorImpl()->set_wrapped_number(true);
    graph_.constants().emplace_back(value, std::move(data));
  }

  at::Tensor make_constant(const TensorMeta& meta, std::string_view bytes) {
    try {
      return tensor_from_bytes(meta, bytes);
    } catch (const c10::Error& error) {
      cursor_.complain("the constant cannot be made: " + std::string(error.what_without_backtrace()));
    } catch (const Error& error) {
      cursor_.complain(error.what());
    }
  }

  void parse_node() {
    std::vector<Operand> results;
    if (!at_operator()) {
      do
        results.push_back(
            read_operand(cursor_, nullptr, [&](Cursor& c) { return definition_or_reference(c); }));
      while (cursor_.accept(","));
      cursor_.expect("=");
    }
    Node node{parse_operator(), {}, std::move(results), {}, Phase::Forward, {}};
    settle_results(node);
    parse_arguments(node);
    if (cursor_.accept_word("writes")) parse_writes(node);
    if (cursor_.accept_word("draws")) parse_states(node);
    if (cursor_.accept("[backward]")) node.phase = Phase::Backward;
    if (cursor_.accept("@")) node.location = cursor_.quoted_string();
    graph_.add_node(std::move(node));
  }

  bool at_operator() { return cursor_.peek_word().find("::") != std::string_view::npos; }

  c10::OperatorHandle parse_operator() {
    if (!at_operator()) cursor_.fail("an operator such as aten::add.Tensor");
    const std::string full(cursor_.peek_word());
    const size_t dot = full.find('.');
    const c10::OperatorName name(full.substr(0, dot), dot == std::string::npos ? "" : full.substr(dot + 1));
    auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op)
      cursor_.complain("there is no operator " + full +
                       "; load the library that registers it, or check its spelling.");
    cursor_.accept_word(full);
    return *op;
  }

  void settle_results(Node& node) {
    const auto& declared = node.op.schema().returns();
    for (size_t i = 0; i < std::min(declared.size(), node.results.size()); ++i)
      settle(node.results[i], declared[i].real_type().get());
  }

  void parse_arguments(Node& node) {
    const auto& declared = node.op.schema().arguments();
    cursor_.expect("(");
    parse_list(")", [&] {
      const size_t i = node.arguments.size();
      if (i >= declared.size())
        cursor_.fail("')' behind the " + std::to_string(i) + " arguments of " + node.op.schema().name());
      if (declared[i].kwarg_only()) {
        cursor_.expect(declared[i].name());
        cursor_.expect("=");
      }
      node.arguments.push_back(
          read_operand(cursor_, declared[i].real_type().get(), [&](Cursor& c) { return reference(c); }));
    });
    if (node.arguments.size() < declared.size())
      cursor_.complain(node.op.schema().name() + " is given " + std::to_string(node.arguments.size()) +
                       " of " + std::to_string(declared.size()) +
                       " arguments; the text spells out all of them.");
  }

  void parse_writes(Node& node) {
    cursor_.expect("(");
    parse_list(")", [&] {
      const Value before = reference(cursor_);
      cursor_.expect("->");
      node.writes.emplace_back(before, definition_or_reference(cursor_));
    });
  }

  void parse_states(Node& node) {
    cursor_.expect("(");
    node.state = reference(cursor_);
    if (cursor_.accept("->")) node.next_state = definition(cursor_);
    cursor_.expect(")");
  }

  void parse_outputs() {
    std::vector<Value> outputs;
    cursor_.expect("(");
    parse_list(")", [&] { outputs.push_back(cursor_.accept_word("none") ? Value{} : reference(cursor_)); });
    graph_.set_outputs(std::move(outputs));
  }

  Cursor cursor_;
  const int64_t id_limit_;
  Graph graph_;
  std::vector<bool> defined_;
  std::map<int32_t, std::string> names_;
};

}  // namespace

Graph Graph::parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace tandem
