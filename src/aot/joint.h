/// Forward and backward of a traced function as one functional graph.
#pragma once

#include <tandem/partition.h>

#include "aot/traced.h"
#include "aot/variant.h"

namespace tandem {

/// What a derivative is taken of: fakes with their autograd graph, and what was recorded behind the forward to make them.
struct Order {
  Tensors sources;                                   ///< tangents belong to these
  std::vector<std::optional<SoleView>> sole_views = {};   ///< of the first sources: the derivative is taken of the view
  Tensors leaves;                                    ///< gradients are taken of these
  std::vector<Node> nodes;
  std::vector<Value> tangents;                       ///< inputs that the nodes read besides the program's own
};

/// The program's outputs and inputs; nothing is recorded behind the forward.
Order first_order(const Traced& traced, const Plan& plan);

/// Every tangent arrives laid out like its source, every gradient is wanted.
BackwardVariant expected_variant(const Order& order);

struct JointGraph {
  Joint joint;                                       ///< primals: inputs of the program, then tangents of the orders below
  std::vector<Value> gradients;                      ///< of the wanted gradient inputs, none where there is none
  bool reads_offsets = false;
  size_t nodes_recorded = 0;
  double record_seconds = 0;                         ///< of all this, how long recording the backward took
  int64_t eager_saved_bytes = 0;                     ///< forward storages, neither inputs nor outputs, that the recorded backward reads
};

/// The forward alone.
JointGraph make_inference_graph(const Traced& traced, const Plan& plan);

/// Forward and backward; throws what eager's backward would throw. Nothing when the backward (a hook, a custom function) reached a captured tensor that
/// the forward did not: it is an input from then on.
std::optional<JointGraph> make_joint_graph(Traced& traced, const Plan& plan, const Order& order, const BackwardVariant& variant);

/// A backward that is differentiated in turn.
struct NextOrder {
  Order order;                                       ///< its sources are the gradients that require grad
  Joint joint;                                       ///< behind the forward's outputs: wanted gradients, then the gradients of those
  size_t tangents = 0;                               ///< how many arrive; the inputs of `joint` behind them are tangents of the new order
  size_t gradients = 0;                              ///< how many are wanted
  std::vector<size_t> sources;                       ///< which of the wanted gradients are sources
  bool complete = true;                              ///< the last outputs are the expected gradients of the new order; else of all those that exist
  std::string refusal;                               ///< why some of them cannot be known ahead, though eager has them; empty when there is no such
};

/// Records the backward with an autograd graph of its own, and the backward of that; throws what eager would throw under create_graph. Where a second
/// derivative does not exist the gradients are there all the same, as in eager. Nothing as above.
std::optional<NextOrder> make_next_order(Traced& traced, const Plan& plan, const Order& order, const BackwardVariant& variant);

}  // namespace tandem
