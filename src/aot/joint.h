/// Forward and backward of a traced function as one functional graph.
#pragma once

#include <tandem/partition.h>

#include "aot/elsewhere.h"
#include "aot/pieces.h"
#include "aot/variant.h"

namespace tandem {

/// Sources and leaves of an order that belong together: a backward is asked for those of one part.
struct OrderPart {
  /// A reentrant checkpoint: which sources lead to it, which leaves lie behind its arguments, and which are
  /// those that its function reads.
  struct Reentrant {
    std::vector<bool> sources, behind, own;
  };
  size_t first_source = 0, sources = 0;
  size_t first_leaf = 0, leaves = 0;
  Tensors beyond = {};  ///< leaves that the order above may lead to besides
  /// of what lies in other pieces; null where there is none
  std::shared_ptr<const Elsewhere> elsewhere = {};
  bool runs_own_code = false;  ///< of the first order: a custom function's or a hook's, on the way
  /// where such code runs in any part: which leaves each source leads to
  std::vector<std::vector<bool>> reaches = {};
  std::vector<Reentrant> reentrant = {};
};

/// What a derivative is taken of: fakes with their autograd graph, and what was recorded behind the forward
/// to make them.
struct Order {
  Tensors sources;  ///< tangents belong to these
  /// of the first sources: the derivative is taken of the view
  std::vector<std::optional<SoleView>> sole_views = {};
  Tensors leaves;                ///< gradients are taken of these
  std::vector<OrderPart> parts;  ///< of the first order its pieces, of others all of it
  std::vector<Node> nodes;
  std::vector<Value> tangents;  ///< inputs that the nodes read besides the program's own
};

/// The program's outputs and inputs, in one part; nothing is recorded behind the forward.
Order first_order(const Traced& traced, const Plan& plan);

/// The same in pieces, at whose borders the history is cut from now on: what crosses one ends there, and
/// begins there anew.
Order cut_into_pieces(Traced& traced, const Plan& plan, const Pieces& pieces);

/// Which part of its order a backward is asked for.
size_t part_of(const std::vector<OrderPart>& parts, const BackwardVariant& variant);
/// What of all that is expected is expected of one part.
BackwardVariant expected_of(const OrderPart& part, const BackwardVariant& all);

/// Every tangent arrives laid out like its source, every gradient is wanted.
BackwardVariant expected_variant(const Order& order);

struct JointGraph {
  /// primals: inputs of the program, then tangents of the orders below
  Joint joint;
  /// of the wanted gradient inputs, none where there is none
  std::vector<Value> gradients;
  bool reads_offsets = false;
  size_t nodes_recorded = 0;
  double record_seconds = 0;  ///< of all this, how long recording the backward took
  /// forward storages, neither inputs nor outputs, that the recorded backward reads
  int64_t eager_saved_bytes = 0;
};

/// The forward alone.
JointGraph make_inference_graph(const Traced& traced, const Plan& plan);

/// Forward and backward; throws what eager's backward would throw. Nothing when the backward (a hook, a
/// custom function) reached a captured tensor that the forward did not: it is an input from then on.
std::optional<JointGraph> make_joint_graph(Traced& traced, const Plan& plan, const Order& order,
                                           const BackwardVariant& variant);

/// A backward that is differentiated in turn.
struct NextOrder {
  Order order;  ///< its sources are the gradients that require grad
  /// behind the forward's outputs: wanted gradients, then the gradients of those
  Joint joint;
  /// how many arrive; the inputs of `joint` behind them are tangents of the new order
  size_t tangents = 0;
  size_t gradients = 0;         ///< how many are wanted
  std::vector<size_t> sources;  ///< which of the wanted gradients are sources
  /// the last outputs are the expected gradients of the new order; else of all those that exist
  bool complete = true;
  /// why some of them cannot be known ahead, though eager has them; empty when there is no such
  std::string refusal;
};

/// Records the backward with an autograd graph of its own, and the backward of that; throws what eager would
/// throw under create_graph. Where a second derivative does not exist the gradients are there all the same,
/// as in eager. Nothing as above.
std::optional<NextOrder> make_next_order(Traced& traced, const Plan& plan, const Order& order,
                                         const BackwardVariant& variant);

}  // namespace tandem
