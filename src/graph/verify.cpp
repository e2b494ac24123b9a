// Whether a graph is well formed: every value defined once and before it is read, every call as its schema
// has it, every write where it can be seen by nobody but those who are meant to.
#include <tandem/error.h>
#include <tandem/graph.h>

#include "graph/boxing.h"
#include "graph/vocabulary.h"
#include "ops/facts.h"

namespace tandem {
namespace {

constexpr int nowhere = -2, at_start = -1;

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph),
        defined_at_(graph.value_count(), nowhere),
        first_read_(graph.value_count(), int(graph.nodes().size()) + 1),
        last_read_(graph.value_count(), nowhere) {}

  void run() {
    for (Value v : graph_.inputs()) check_edge(v, "input");
    for (const auto& [value, data] : graph_.constants()) check_constant(value, data);
    for (index_ = 0; index_ < int(graph_.nodes().size()); ++index_) check_node(graph_.nodes()[index_]);
    for (Value v : graph_.outputs()) check_output(v);
    for (index_ = 0; index_ < int(graph_.nodes().size()); ++index_)
      for (const auto& [before, after] : graph_.nodes()[index_].writes)
        check_write(graph_.nodes()[index_], before, after);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error("The graph is broken: " + what); }

  [[noreturn]] void fail_at_node(const std::string& what) const {
    throw Error("The graph is broken at node " + std::to_string(index_) + ", " +
                full_name(graph_.nodes()[index_].op) + ": " + what + "\n" + excerpt(graph_, size_t(index_)));
  }

  std::string show(Value v) const { return '%' + graph_.name(v); }
  bool exists(Value v) const { return v && size_t(v.id) < graph_.value_count(); }
  bool is_input(Value v) const { return defined_at_[v.id] == at_start && !is_constant(v); }
  bool is_constant(Value v) const {
    return std::any_of(graph_.constants().begin(), graph_.constants().end(),
                       [&](const auto& constant) { return constant.first == v; });
  }

  void check_edge(Value v, const std::string& role) {
    if (!exists(v)) fail("an " + role + " names a value that does not exist.");
    if (defined_at_[v.id] != nowhere)
      fail("the value " + show(v) + " is an input or a constant twice; give the second a value of its own.");
    if (std::string wrong = complaint(graph_.meta(v)); !wrong.empty())
      fail("the " + role + " " + show(v) + " " + wrong + ".");
    defined_at_[v.id] = at_start;
  }

  void check_constant(Value v, const at::Tensor& data) {
    check_edge(v, "input or constant");
    if (!data.defined()) fail("the constant " + show(v) + " has no data.");
    const TensorMeta& meta = graph_.meta(v);
    if (data.scalar_type() != meta.dtype || data.sizes() != at::IntArrayRef(meta.sizes))
      fail("the constant " + show(v) + " has data of another dtype or size than is recorded for it.");
  }

  void check_node(const Node& node) {
    check_arguments(node);
    check_states(node);
    check_written_are_declared(node);
    check_results(node);
  }

  void check_arguments(const Node& node) {
    const auto& declared = node.op.schema().arguments();
    if (node.arguments.size() != declared.size())
      fail_at_node("it is given " + std::to_string(node.arguments.size()) + " arguments, its schema has " +
                   std::to_string(declared.size()) + ".");
    for (size_t i = 0; i < declared.size(); ++i) {
      const std::string wrong = mismatch(node.arguments[i], *declared[i].type());
      if (!wrong.empty()) fail_at_node("its argument '" + declared[i].name() + "' " + wrong + ".");
      for_each_value(node.arguments[i], [&](Value v) { check_read(v, declared[i].name()); });
      if (is_number(*declared[i].type()) || is_list_of_numbers(*declared[i].type()))
        check_numbers(node.arguments[i], declared[i].name());
    }
  }

  void check_states(const Node& node) {
    if (!node.state && !node.next_state) return;
    if (!node.state) fail_at_node("it leaves a generator's state behind and draws from none.");
    if (!facts(node.op).random)
      fail_at_node("it draws from a generator's state, and its operator draws no random numbers.");
    check_read(node.state, "the state it draws from");
    for (Value state : {node.state, node.next_state}) {
      if (!state) continue;
      if (!exists(state)) fail_at_node("the state that it leaves behind is a value that does not exist.");
      const TensorMeta& meta = graph_.meta(state);
      if (meta.dtype != at::kByte || meta.sizes.size() != 1 || !meta.device.is_cpu())
        fail_at_node("the generator's state " + show(state) + " is no list of bytes on the CPU.");
    }
  }

  void check_numbers(const Operand& operand, const std::string& argument) {
    for_each_value(operand, [&](Value v) {
      if (!graph_.meta(v).sizes.empty())
        fail_at_node("its argument '" + argument +
                     "' is a tensor with dimensions where the schema has a number.");
    });
  }

  void check_read(Value v, const std::string& argument) {
    if (!exists(v)) fail_at_node("its argument '" + argument + "' names a value that does not exist.");
    if (defined_at_[v.id] == nowhere)
      fail_at_node("its argument '" + argument + "' reads " + show(v) + ", which nothing before it defines.");
    first_read_[v.id] = std::min(first_read_[v.id], index_);
    last_read_[v.id] = index_;
  }

  /// The node owns up to every write that its schema shows, and to none that its operator does not do. Hidden
  /// writes may be missing: they happen only in training.
  void check_written_are_declared(const Node& node) {
    const OpFacts& known = facts(node.op);
    for (int i : known.written) {
      const bool hidden =
          std::find(known.hidden_writes.begin(), known.hidden_writes.end(), i) != known.hidden_writes.end();
      for_each_value(node.arguments[size_t(i)], [&](Value v) {
        if (!hidden && !writes(node, v))
          fail_at_node("it writes " + show(v) + " and does not list it among its writes.");
      });
    }
    for (const auto& [before, after] : node.writes) {
      if (!exists(before) || !exists(after)) fail_at_node("its writes name a value that does not exist.");
      bool written = false;
      for (int i : known.written)
        for_each_value(node.arguments[size_t(i)], [&](Value v) { written |= v == before; });
      if (!written)
        fail_at_node("it lists a write to " + show(before) +
                     ", which is none of the arguments that the operator writes.");
    }
  }

  static bool writes(const Node& node, Value v) {
    return std::any_of(node.writes.begin(), node.writes.end(),
                       [&](const auto& write) { return write.first == v; });
  }

  void check_results(const Node& node) {
    const auto& declared = node.op.schema().returns();
    if (node.results.size() != declared.size())
      fail_at_node("it has " + std::to_string(node.results.size()) + " results, its schema returns " +
                   std::to_string(declared.size()) + ".");
    for (size_t i = 0; i < declared.size(); ++i) {
      const std::string wrong = mismatch(node.results[i], *declared[i].type());
      if (!wrong.empty()) fail_at_node("its result " + std::to_string(i) + " " + wrong + ".");
      for_each_value(node.results[i], [&](Value v) { define(node, v); });
    }
    for (const auto& [before, after] : node.writes)
      if (after != before) define(node, after);
    if (node.next_state) define(node, node.next_state);
  }

  void define(const Node& node, Value v) {
    if (!exists(v)) fail_at_node("a result names a value that does not exist.");
    // An operator may return the argument that it wrote: one value, met as result and as write.
    const bool written_here = std::any_of(node.writes.begin(), node.writes.end(),
                                          [&](const auto& write) { return write.second == v; });
    const int at = defined_at_[v.id];
    const bool handed_back = written_here && (at == index_ || (at != nowhere && writes(node, v)));
    if (at != nowhere && !handed_back) fail_at_node("it defines " + show(v) + ", which is defined already.");
    if (std::string wrong = complaint(graph_.meta(v)); !wrong.empty())
      fail_at_node("its result " + show(v) + " " + wrong + ".");
    if (at == nowhere) defined_at_[v.id] = index_;
  }

  void check_output(Value v) {
    if (!v) return;
    if (!exists(v)) fail("an output names a value that does not exist.");
    if (defined_at_[v.id] == nowhere) fail("the output " + show(v) + " is defined by nothing.");
  }

  void group_by_storage() {
    for (size_t id = 0; id < graph_.value_count(); ++id)
      if (Value v{int32_t(id)}; defined_at_[id] != nowhere && graph_.meta(v).storage >= 0)
        in_storage_[graph_.meta(v).storage].push_back(v);
  }

  void check_write(const Node& node, Value before, Value after) {
    if (is_constant(before))
      fail_at_node("it writes the constant " + show(before) +
                   ", which every run shares; let it write a clone.");
    is_input(before) ? check_copy_back(node, before, after) : check_private(node, before, after);
    if (after != before && is_output(before))
      fail_at_node("it writes " + show(before) + ", which is also an output as it was before.");
  }

  bool is_output(Value v) const {
    return std::find(graph_.outputs().begin(), graph_.outputs().end(), v) != graph_.outputs().end();
  }

  /// An input may be written by a copy only, and nobody may read afterwards what it held.
  void check_copy_back(const Node& node, Value before, Value after) {
    if (full_name(node.op) != "aten::copy_")
      fail_at_node("it writes the input " + show(before) + "; only aten::copy_ at the end may do that.");
    auto stale = [&](Value v) {
      return v != after && defined_at_[v.id] < index_ && last_read_[v.id] > index_ && !is_copied_into(v);
    };
    if (stale(before)) fail_at_node("it writes the input " + show(before) + ", which is read afterwards.");
    for (Value v : sharing_storage(before))
      if (stale(v))
        fail_at_node("it writes the input " + show(before) + ", and " + show(v) +
                     ", which shares its memory, is read afterwards.");
  }

  /// Inputs that share memory are each copied into at the end: being the target of a copy is no read.
  bool is_copied_into(Value v) const {
    const Node& reader = graph_.nodes()[size_t(last_read_[v.id])];
    return is_input(v) && writes(reader, v);
  }

  /// Any other written value is fresh, and this node is the only one that reads it.
  void check_private(const Node& node, Value before, Value after) {
    const Node& maker = graph_.nodes()[size_t(defined_at_[before.id])];
    const bool written_by_maker = std::any_of(maker.writes.begin(), maker.writes.end(),
                                              [&](const auto& write) { return write.second == before; });
    if (!written_by_maker) check_fresh(maker, before);
    int reads = 0;
    for_each_argument(node, [&](Value v) { reads += v == before; });
    const bool read_elsewhere =
        first_read_[before.id] < index_ || (after != before && last_read_[before.id] > index_);
    if (reads > 1 || read_elsewhere)
      fail_at_node("it writes " + show(before) + ", which something else reads; let it write a clone.");
  }

  void check_fresh(const Node& maker, Value v) {
    bool shared = facts(maker.op).view;
    for (Value other : sharing_storage(v)) shared |= defined_at_[other.id] < defined_at_[v.id];
    if (shared)
      fail_at_node("it writes " + show(v) + ", which is no clone but shares memory with an older value.");
  }

  /// Grouped when first asked for: most graphs write nothing.
  const std::vector<Value>& sharing_storage(Value v) {
    static const std::vector<Value> none;
    if (in_storage_.empty()) group_by_storage();
    auto it = in_storage_.find(graph_.meta(v).storage);
    return it == in_storage_.end() ? none : it->second;
  }

  const Graph& graph_;
  int index_ = at_start;
  std::vector<int> defined_at_, first_read_, last_read_;
  std::unordered_map<int32_t, std::vector<Value>> in_storage_;
};

}  // namespace

void Graph::verify() const { Verifier(*this).run(); }

}  // namespace tandem
