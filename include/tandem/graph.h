/// The graph that every stage speaks: named tensors, operator calls, and what is known about each tensor
/// ahead of time.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace [[gnu::visibility("default")]] tandem {

using Tensors = std::vector<at::Tensor>;

/// The name of one tensor inside one graph; a default-constructed one stands for "none".
struct Value {
  int32_t id = -1;
  explicit operator bool() const { return id >= 0; }
  friend bool operator==(Value, Value) = default;
  friend auto operator<=>(Value, Value) = default;
};

using Dims = c10::SmallVector<int64_t, 5>;

/// What is known about a tensor before it exists. Tensors with equal `storage` share memory.
struct TensorMeta {
  at::ScalarType dtype = at::kFloat;
  c10::Device device = c10::kCPU;
  Dims sizes, strides;
  int64_t offset = 0;
  int32_t storage = -1;
  bool requires_grad = false;
  bool conj = false, neg = false;

  int64_t numel() const;
  /// Bytes of the smallest storage that holds this geometry, its offset included.
  int64_t storage_bytes() const;
  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;
};

/// Same dtype, device, sizes, strides, offset and lazy bits: one can stand in for the other in memory.
bool same_geometry(const TensorMeta& a, const TensorMeta& b);

/// One argument or one result of a node: a tensor, a list of tensors, or a constant (anything that is no
/// tensor).
using Operand = std::variant<Value, std::vector<Value>, c10::IValue>;

enum class Phase : uint8_t { Forward, Backward };

/// One operator call.
struct Node {
  c10::OperatorHandle op;
  std::vector<Operand> arguments;  ///< one per schema argument, defaults filled in
  /// one per schema return; a constant where the operator returns no tensor
  std::vector<Operand> results;
  /// Arguments that the operator writes, each with the value it holds afterwards. In a functional graph a
  /// written argument is a clone that nothing else reads, except for the copies back into inputs at a graph's
  /// end.
  std::vector<std::pair<Value, Value>> writes;
  Phase phase = Phase::Forward;
  std::string location;  ///< file:line in the user's program, where it was asked for
  /// Of a random node: the generator's state that it draws from. The live generator is left alone then, and
  /// the node is a function of what it reads like any other. None: it draws from the live generator.
  Value state = {};
  /// the state that its draw leaves behind, where somebody asks for that
  Value next_state = {};
};

/// Calls `visit(Value)` for every tensor in an operand, nones left out.
template <class Visit>
void for_each_value(const Operand& operand, Visit&& visit) {
  if (auto* value = std::get_if<Value>(&operand)) {
    if (*value) visit(*value);
  } else if (auto* list = std::get_if<std::vector<Value>>(&operand)) {
    for (Value v : *list)
      if (v) visit(v);
  }
}
/// Every tensor that a node reads.
template <class Visit>
void for_each_argument(const Node& node, Visit&& visit) {
  for (const Operand& a : node.arguments) for_each_value(a, visit);
  if (node.state) visit(node.state);
}
/// Every tensor a node makes: its results, then the values its written arguments hold afterwards, then the
/// next state.
template <class Visit>
void for_each_result(const Node& node, Visit&& visit) {
  for (const Operand& r : node.results) for_each_value(r, visit);
  for (const auto& [before, after] : node.writes)
    if (after != before) visit(after);
  if (node.next_state) visit(node.next_state);
}
/// Replaces every tensor in an operand by `map(Value) -> Value`, nones left alone.
template <class Map>
void map_values(Operand& operand, Map&& map) {
  if (auto* value = std::get_if<Value>(&operand)) {
    if (*value) *value = map(*value);
  } else if (auto* list = std::get_if<std::vector<Value>>(&operand)) {
    for (Value& v : *list)
      if (v) v = map(v);
  }
}
/// Replaces every tensor that a node reads.
template <class Map>
void map_arguments(Node& node, Map&& map) {
  for (Operand& a : node.arguments) map_values(a, map);
  if (node.state) node.state = map(node.state);
}

/// A value type: copying it copies the program; tensors that are constants of the program are shared.
class Graph {
 public:
  const std::vector<Value>& inputs() const { return inputs_; }
  /// a none is an output that is not there
  const std::vector<Value>& outputs() const { return outputs_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<std::pair<Value, at::Tensor>>& constants() const { return constants_; }
  const TensorMeta& meta(Value value) const { return metas_[value.id]; }
  /// How many values were ever named; ids are below it.
  size_t value_count() const { return metas_.size(); }
  /// A storage number that no value of this graph has.
  int32_t fresh_storage() const { return next_storage_; }
  /// The name shown for a value: the one it was given, else its number.
  std::string name(Value value) const;
  bool empty() const { return inputs_.empty() && nodes_.empty() && outputs_.empty(); }
  /// The same values, inputs, outputs and constants, and no node.
  Graph without_nodes() const;

  // Building. Values are numbered in the order they are made.
  Value add_value(TensorMeta meta);
  /// Room for so many values, for whoever knows how many there will be.
  void reserve_values(size_t count) { metas_.reserve(count); }
  Value add_input(TensorMeta meta, std::string name = {});
  void add_input(Value value) { inputs_.push_back(value); }
  Value add_constant(TensorMeta meta, at::Tensor data);
  Node& add_node(Node node);
  /// Describes a value anew; the storage that it is said to have is taken from then on.
  void set_meta(Value value, TensorMeta meta);
  void set_name(Value value, std::string name);
  void set_outputs(std::vector<Value> outputs) { outputs_ = std::move(outputs); }
  void set_inputs(std::vector<Value> inputs) { inputs_ = std::move(inputs); }
  TensorMeta& meta(Value value) { return metas_[value.id]; }
  std::vector<Node>& nodes() { return nodes_; }
  std::vector<std::pair<Value, at::Tensor>>& constants() { return constants_; }

  /// Text that parses back to an equal graph.
  std::string to_string() const;
  /// The graph that `to_string` wrote; throws Error that says where a text is not one.
  static Graph parse(std::string_view text);
  /// SHA-256, in hex, of everything that changes what the graph computes; equal across processes and
  /// machines. Names and locations are not part of it.
  std::string hash() const;
  /// Throws Error with the offending node and its neighbours unless the graph is well formed.
  void verify() const;
  /// The graph in the language of Graphviz.
  std::string to_dot() const;
  /// Writes a picture; the ending of `path` (svg, png) says which kind.
  void draw(const std::filesystem::path& path) const;
  /// Runs node by node; `inputs` may be emptied as it goes.
  Tensors run(Tensors&& inputs) const;

 private:
  std::vector<Value> inputs_, outputs_;
  std::vector<Node> nodes_;
  std::vector<TensorMeta> metas_;
  int32_t next_storage_ = 0;
  std::vector<std::pair<int32_t, std::string>> names_;  ///< sorted by value id
  std::vector<std::pair<Value, at::Tensor>> constants_;
};

/// One node as it is printed in a graph: `%5: f32[3, 4] = aten::add.Tensor(%0, %1, alpha=1)`.
std::string to_string(const Graph& graph, const Node& node);
/// The node at `index` marked, with `radius` nodes either side, for error messages.
std::string excerpt(const Graph& graph, size_t index, size_t radius = 3);

}  // namespace tandem
