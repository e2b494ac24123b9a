#include <tandem/build.h>
#include <tandem/passes.h>

#include "graph/uses.h"
#include "partition/narrow.h"
#include "partition/narrow_rows.h"

namespace tandem {
namespace {

/// Goes through a graph and finds narrow forms that it makes itself.
class Straightener {
 public:
  explicit Straightener(Graph graph)
      : graph_(std::move(graph)), nodes_(graph_.nodes()), makers_(makers(graph_)) {}

  Graph run() {
    graph_.nodes().clear();
    bool is_changed = false;
    for (Node node : nodes_) {
      for (size_t a = 0; a < node.arguments.size(); ++a)
        if (const Value wide = narrowed_and_widened(node, a)) {
          node.arguments[a] = wide;
          is_changed = true;
        }
      if (add_threshold_backward(node))
        is_changed = true;
      else
        graph_.add_node(std::move(node));
    }
    return is_changed ? eliminate_dead_code(std::move(graph_)) : std::move(graph_);
  }

 private:
  /// The node that makes an argument, if it is this operator.
  const Node* maker(const Node& reader, size_t argument, const c10::OperatorHandle& op) const {
    const Value value = tensor_at(reader, argument);
    const int32_t n = value && size_t(value.id) < makers_.size() ? makers_[size_t(value.id)] : no_node;
    return n != no_node && nodes_[size_t(n)].op == op ? &nodes_[size_t(n)] : nullptr;
  }

  at::ScalarType type_of(Value value) const { return graph_.meta(value).dtype; }

  /// The places that an argument was before they were put into a smaller type and back.
  Value narrowed_and_widened(const Node& reader, size_t argument) const {
    const at::ScalarType type = type_of_places(graph_, reader, argument);
    const Node* wide = type == at::kLong ? nullptr : maker(reader, argument, cast_);
    const Node* narrow = wide ? maker(*wide, 0, cast_) : nullptr;
    if (!narrow || type_of(std::get<Value>(narrow->results[0])) != type) return {};
    const Value places = tensor_at(*narrow, 0);
    return same_geometry(graph_.meta(places), graph_.meta(tensor_at(reader, argument))) ? places : Value();
  }

  bool add_threshold_backward(const Node& choice) {
    if (choice.op != where_) return false;
    const Node *form = maker(choice, 0, le_), *zero = maker(choice, 1, scalar_);
    if (!form || !zero || !is_zero(form->arguments[1]) || !is_zero(zero->arguments[0])) return false;
    const Value value = std::get<Value>(form->arguments[0]), gradient = std::get<Value>(choice.arguments[2]),
                result = std::get<Value>(choice.results[0]);
    if (!is_choice_by_sign(graph_, value, gradient)) return false;
    Node& straight =
        append_call(graph_, threshold_backward_, {gradient, value, c10::IValue(0.0)}, choice.phase);
    if (!same_geometry(graph_.meta(std::get<Value>(straight.results[0])), graph_.meta(result))) {
      graph_.nodes().pop_back();
      return false;
    }
    straight.results[0] = result;
    straight.location = choice.location;
    return true;
  }

  Graph graph_;
  const std::vector<Node> nodes_;
  const std::vector<int32_t> makers_;
  const c10::OperatorHandle cast_ = find_op("aten::_to_copy"), where_ = find_op("aten::where.self"),
                            le_ = find_op("aten::le.Scalar"), scalar_ = find_op("aten::scalar_tensor"),
                            threshold_backward_ = find_op("aten::threshold_backward");
};

}  // namespace

Graph without_detours(Graph half) { return Straightener(std::move(half)).run(); }

}  // namespace tandem
