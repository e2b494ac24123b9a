/// Where NaN comes from in code that was compiled as one piece.
#pragma once

#include <tandem/graph.h>

#include <optional>
#include <string>

namespace tandem {

/// The first node of `graph`, run on these inputs, that makes NaN of values without one: its operator and the
/// nodes around it. Empty when NaN came in from outside, or there is none.
std::string source_of_nan(const Graph& graph, Tensors inputs);

/// In anomaly mode the engine reports NaN that a node returns; of a node that is a whole graph the reader
/// wants to know more.
class NanReport {
 public:
  /// Keeps the inputs of a backward where they will be asked for.
  explicit NanReport(const Tensors& inputs);
  /// Throws where one of the gradients has a NaN that the graph made.
  void check(const Tensors& gradients, const Graph& graph, const std::string& node) const;

 private:
  std::optional<Tensors> inputs_;
};

}  // namespace tandem
