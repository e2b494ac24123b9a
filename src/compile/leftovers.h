/// What the backwards of a call leave to those behind them.
#pragma once

#include "aot/joint.h"
#include "aot/saving.h"

namespace tandem {

/// The tangents that came with a backward and the gradients that it was asked for.
Between asked_of(const BackwardVariant& variant);

/// In eager each node of the history gives up what it saved behind the last backward that comes by it. A
/// compiled node stands for many of them, and a value that it saved may belong to several.
class Leftovers {
 public:
  /// `backward` takes `saved` values, then the tangents, and returns all gradients; `saving` says where
  /// eager's nodes lie that give something up. A saved value that it does not read is there for other
  /// backwards, and kept as long as eager allows any.
  Leftovers(std::vector<Between> saving, const Graph& backward, size_t saved);

  /// Whether eager would refuse `next` behind backwards that were the last ones through their nodes.
  bool refuse(const std::vector<Between>& done, const Between& next) const;
  /// Those of the `saved` values that no backward of these sources can ask for any more.
  std::vector<size_t> unreadable(const std::vector<Between>& done, const std::vector<size_t>& saved,
                                 const OrderPart& part) const;

 private:
  using Gradients =
      c10::SmallVector<Bits, 1>;  ///< for each tangent, those that something takes part in with it

  Gradients refused(const std::vector<Between>& done) const;
  Gradients gradients_of_tangents(const Graph& backward, const std::vector<Bits>& behind) const;

  std::vector<Between> saving_;
  size_t tangents_, gradients_;
  std::vector<Gradients> read_for_;  ///< of each saved value
};

}  // namespace tandem
