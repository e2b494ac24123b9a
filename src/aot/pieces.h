/// How the history of a traced function falls into pieces, each of which becomes one node of a call.
///
/// The caller may ask for the gradient of one output with respect to another, hook it or retain its gradient.
/// So the history is cut at every tensor that the caller gets and that others are computed from. What lies as
/// many cuts away from the outputs, and has something in common, is one piece: gradients only go from a piece
/// to deeper ones.
#pragma once

#include "aot/traced.h"
#include "base/autograd.h"

#include <unordered_map>
#include <unordered_set>

namespace tandem {

/// Where a gradient goes that leaves a piece.
struct PieceTarget {
  enum class Kind : uint8_t {
    Input,   ///< of the contract
    Source,  ///< of a deeper piece, counted through all of them
    Output,  ///< of the contract: a view of a result, which leads on to that
  };
  Kind kind;
  size_t index;
  /// Output: the last step that was taken to the view, where the caller's is a view of it, and which result
  /// it is of the operator, where the caller's is another one
  size_t step = 0, result = 0;
};

/// Where a piece gets a gradient from.
struct PieceSource {
  enum class Kind : uint8_t {
    Result,  ///< one of `Plan::returned` has it from the caller
    Term,    ///< another piece computes it
    View,    ///< an output that is a view of an input and has a history of its own
  };
  Kind kind;
  size_t index;  ///< Result and View: of `Plan::tangent_sources`; Term: which crossing
};

/// An edge of the history that leads out of a piece.
struct Crossing {
  NodePtr from;
  size_t edge;  ///< which of its next edges
  torch::autograd::Edge to;
  PieceTarget target;
};

struct Piece {
  size_t first_source = 0, sources = 0;  ///< among those of all pieces
  size_t first_leaf = 0, leaves = 0;
  std::vector<size_t> inputs;       ///< places in `Plan::gradient_inputs` that it leads to itself
  std::vector<size_t> crossings;    ///< its leaves behind these, in the order in which eager adds them
  std::vector<size_t> points;       ///< crossings to the different places inside others that it leads to
  std::vector<PieceTarget> beyond;  ///< where gradients of higher order may go besides: inputs, then
                                    ///< `points`; behind them come `own`
  std::vector<size_t> own;          ///< sources that are the caller's results, where there are pieces behind
                                    ///< or before it: results that were saved lead there again
  std::vector<OutputStep> output_steps;  ///< taken as soon as its node is there: others lead to these views
};

struct Pieces {
  std::vector<Piece> all;  ///< deeper ones first
  std::vector<PieceSource> sources;
  std::vector<Crossing> crossings;
  std::vector<OutputStep> last_steps;                  ///< those of `Plan::output_steps` that are left
  std::unordered_map<size_t, size_t> piece_of_output;  ///< of outputs with a history of their own
  std::unordered_map<const torch::autograd::Node*, size_t> piece_of;
};

/// The pieces of a function that is traced and planned; throws RunEagerly where a gradient is retained inside
/// the function at a place that is not cut.
Pieces find_pieces(const Traced& traced, const Plan& plan);

}  // namespace tandem
