#include "partition/narrow.h"

#include <tandem/build.h>

#include <map>

#include "graph/draws.h"
#include "graph/uses.h"
#include "partition/computation_keys.h"
#include "partition/narrow_rows.h"

namespace tandem {
namespace {

class Narrower {
 public:
  Narrower(Joint joint, const Narrowing& narrowing)
      : joint_(std::move(joint)),
        graph_(joint_.graph),
        narrowing_(narrowing),
        nodes_(graph_.nodes()),
        makers_(makers(graph_)),
        of_caller_(storages_of_caller(graph_, joint_.forward_outputs)),
        is_reader_(find_readers()) {}

  Joint run() {
    find_what_others_read();
    for_each_read([&](const Node& reader, size_t argument) {
      const Value value = tensor_at(reader, argument);
      if (reads_sign_alone(graph_, reader, argument)) add_signs(value);
      if (makes_places_for(maker_of(value), reader))
        narrow_places(value, type_of_places(graph_, reader, argument));
    });
    find_what_is_read_as_it_is();
    graph_.nodes().clear();
    for (size_t n = 0; n < nodes_.size(); ++n) {
      is_reader(nodes_[n]) ? add_reader(nodes_[n]) : void(graph_.add_node(nodes_[n]));
      for (Node& form : forms_behind_[int32_t(n)]) graph_.add_node(std::move(form));
    }
    return std::move(joint_);
  }

 private:
  bool is_reader(const Node& node) const { return is_reader_[size_t(&node - nodes_.data())]; }

  /// A node of the forward below has to stay as it is, or nobody would find again what that kept.
  std::vector<bool> find_readers() const {
    std::vector<bool> found;
    for (const Node& node : nodes_) found.push_back(node.phase == Phase::Backward || narrowing_.below);
    if (!narrowing_.below) return found;
    ComputationKeys computations(/*apart=*/false);
    std::unordered_set<uint64_t> ran;
    const std::vector<uint64_t> old = computations.of(*narrowing_.below), keys = computations.of(joint_);
    for (const Node& node : narrowing_.below->graph.nodes())
      if (node.phase == Phase::Forward)
        for_each_result(node, [&](Value v) { ran.insert(old[size_t(v.id)]); });
    for (size_t n = 0; n < nodes_.size(); ++n)
      for_each_result(nodes_[n], [&](Value v) { found[n] = found[n] && !ran.contains(keys[size_t(v.id)]); });
    return found;
  }

  /// Every argument of a backward's node that is a value of the forward, out of the caller's reach.
  template <class Visit>
  void for_each_read(const Visit& visit) const {
    for (const Node& node : nodes_)
      for (size_t a = 0; is_reader(node) && a < node.arguments.size(); ++a)
        if (Value value = tensor_at(node, a); value && is_own(value)) visit(node, a);
  }

  bool is_own(Value value) const {
    const int32_t maker = makers_[size_t(value.id)];
    return maker != no_node && nodes_[size_t(maker)].phase == Phase::Forward &&
           !of_caller_.contains(graph_.meta(value).storage);
  }

  Node& maker_of(Value value) { return nodes_[size_t(makers_[size_t(value.id)])]; }

  void find_what_others_read() {
    for (const Node& node : nodes_)
      if (!is_reader(node))
        for_each_argument(node, [&](Value v) { read_by_others_.insert(graph_.meta(v).storage); });
    for (Value output : graph_.outputs())
      if (output) read_as_it_is_.insert(graph_.meta(output).storage);
  }

  /// Behind the node that makes a value; false where the backend would have to take time for it.
  bool add_form(const Node& form, Value of) {
    if (narrowing_.fuses && !narrowing_.fuses(graph_, form)) return false;
    forms_behind_[makers_[size_t(of.id)]].push_back(form);
    forms_behind_[makers_[size_t(of.id)]].back().location = maker_of(of).location;
    return true;
  }

  /// A call that is to be put into its place later.
  Node made(const char* op, std::vector<Operand> arguments, Phase phase) {
    Node node = append_call(graph_, find_op(op), std::move(arguments), phase);
    graph_.nodes().pop_back();
    return node;
  }

  void add_signs(Value of) {
    if (signs_.contains(of)) return;
    const Node form = made("aten::le.Scalar", {of, c10::IValue(0.0)}, Phase::Forward);
    if (add_form(form, of)) signs_.emplace(of, std::get<Value>(form.results[0]));
  }

  /// What reads the places goes on to do so; the forward makes others, of which they are a copy.
  void narrow_places(Value places, at::ScalarType type) {
    if (type == at::kLong || copies_.contains(places) || is_read_by_others(places)) return;
    TensorMeta meta = graph_.meta(places);
    meta.storage = graph_.fresh_storage();
    const Value original = graph_.add_value(std::move(meta));
    const Node form = made("aten::_to_copy", {original, c10::IValue(int64_t(type))}, Phase::Forward);
    Node copy = made("aten::_to_copy", {form.results[0], c10::IValue(int64_t(at::kLong))}, Phase::Backward);
    Value& result = std::get<Value>(copy.results[0]);
    if (!same_geometry(graph_.meta(result), graph_.meta(places)) || !add_form(form, places)) return;
    result = places;
    copies_.emplace(places, std::move(copy));
    for (Operand& made : maker_of(places).results)
      map_values(made, [&](Value v) { return v == places ? original : v; });
  }

  bool is_read_by_others(Value value) const {
    const int32_t storage = graph_.meta(value).storage;
    return read_by_others_.contains(storage) || read_as_it_is_.contains(storage);
  }

  bool is_choice(const Node& reader, size_t argument) const {
    return reads_sign_alone(graph_, reader, argument) && signs_.contains(tensor_at(reader, argument));
  }

  /// By storages, which are what is kept.
  void find_what_is_read_as_it_is() {
    for (const Node& node : nodes_)
      for (size_t a = 0; is_reader(node) && a < node.arguments.size(); ++a)
        if (!is_choice(node, a) && !reads_geometry_alone(graph_, node, a))
          for_each_value(node.arguments[a], [&](Value v) { read_as_it_is_.insert(graph_.meta(v).storage); });
  }

  void add_reader(Node reader) {
    for_each_argument(reader, [&](Value v) { add_copy(v, reader.phase); });
    for (size_t a = 0; a < reader.arguments.size(); ++a) {
      const Value value = tensor_at(reader, a);
      if (!value || size_t(value.id) >= makers_.size() || !is_own(value)) continue;
      if (is_choice(reader, a)) {
        if (add_choice(reader, signs_.at(value))) return;
        reader.arguments[a] = of_same_signs(value, reader.phase);
      }
      if (reads_geometry_alone(graph_, reader, a) && has_stand_in(value))
        reader.arguments[a] = stand_in(graph_.meta(value), reader.phase);
    }
    graph_.add_node(std::move(reader));
  }

  void add_copy(Value places, Phase phase) {
    const auto copy = copies_.find(places);
    if (copy == copies_.end()) return;
    copy->second.phase = phase;
    graph_.add_node(std::move(copy->second));
    copies_.erase(copy);
  }

  /// Above the first order nobody knows whether what was not read as it is was kept.
  bool has_stand_in(Value value) const {
    return narrowing_.below || !read_as_it_is_.contains(graph_.meta(value).storage);
  }

  /// Zero where the form says so, else the gradient; false where that would lie in memory in another way.
  bool add_choice(const Node& reader, Value form) {
    const Value result = std::get<Value>(reader.results[0]), gradient = tensor_at(reader, 0);
    const Value zero = zero_like(graph_.meta(gradient), reader.phase);
    Node& choice = append_call(graph_, find_op("aten::where.self"), {form, zero, gradient}, reader.phase);
    if (!same_geometry(graph_.meta(std::get<Value>(choice.results[0])), graph_.meta(result))) {
      graph_.nodes().pop_back();
      return false;
    }
    choice.results[0] = result;
    choice.location = reader.location;
    return true;
  }

  /// In the same layout, which decides that of the gradient; the value itself where its form lies otherwise.
  Value of_same_signs(Value value, Phase phase) {
    const size_t before = graph_.nodes().size();
    const c10::IValue type(int64_t(graph_.meta(value).dtype));
    Builder build(graph_, phase);
    const Value made =
        build.call("aten::_to_copy", {build.call("aten::logical_not", {signs_.at(value)}), type});
    if (same_geometry(graph_.meta(made), graph_.meta(value))) return made;
    graph_.nodes().erase(graph_.nodes().begin() + int64_t(before), graph_.nodes().end());
    return value;
  }

  Value zero_like(const TensorMeta& meta, Phase phase) {
    const auto key = std::tuple(meta.dtype, meta.device.str(), phase);
    const auto known = zeros_.find(key);
    if (known != zeros_.end()) return known->second;
    const c10::Device device = meta.device;
    return zeros_[key] = Builder(graph_, phase)
                             .call("aten::scalar_tensor", {c10::IValue(0.0), c10::IValue(int64_t(meta.dtype)),
                                                           c10::IValue(), c10::IValue(device)});
  }

  /// Memory of the same geometry that holds nothing.
  Value stand_in(TensorMeta meta, Phase phase) {
    return Builder(graph_, phase)
        .call("aten::empty_strided",
              {c10::IValue(at::IntArrayRef(meta.sizes)), c10::IValue(at::IntArrayRef(meta.strides)),
               c10::IValue(int64_t(meta.dtype)), c10::IValue(), c10::IValue(meta.device)});
  }

  Joint joint_;
  Graph& graph_;
  const Narrowing& narrowing_;
  std::vector<Node> nodes_;
  const std::vector<int32_t> makers_;
  const std::unordered_set<int32_t> of_caller_;  ///< storages, and so are these:
  std::unordered_set<int32_t> read_by_others_, read_as_it_is_;
  const std::vector<bool> is_reader_;  ///< by the numbers of nodes
  std::map<Value, Value> signs_;
  std::map<Value, Node> copies_;                       ///< of places, before their first reader
  std::map<int32_t, std::vector<Node>> forms_behind_;  ///< by the nodes that make what they are forms of
  std::map<std::tuple<at::ScalarType, std::string, Phase>, Value> zeros_;
};

}  // namespace

std::vector<bool> read_by_backward_alone(const Joint& joint) {
  const Graph& graph = joint.graph;
  std::vector<bool> read(graph.value_count()), found(graph.nodes().size());
  for (size_t i = 0; i < joint.forward_outputs; ++i)
    if (Value output = graph.outputs()[i]) read[size_t(output.id)] = true;
  for (const Node& node : graph.nodes())
    if (node.phase == Phase::Forward) for_each_argument(node, [&](Value v) { read[size_t(v.id)] = true; });
  for (size_t n = 0; n < found.size(); ++n) {
    found[n] = graph.nodes()[n].phase == Phase::Forward && !draws_live(graph.nodes()[n]);
    for_each_result(graph.nodes()[n], [&](Value v) { found[n] = found[n] && !read[size_t(v.id)]; });
  }
  return found;
}

Joint with_narrow_forms(Joint joint, const Narrowing& narrowing) {
  return Narrower(std::move(joint), narrowing).run();
}

}  // namespace tandem
