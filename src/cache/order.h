/// One order of differentiation as plain data: what a compile finds out and the cache keeps.
#pragma once

#include <tandem/partition.h>

#include "aot/variant.h"

namespace tandem {

/// How many of an order are kept, in memory and in an entry: backwards, and orders above it. A function that
/// is asked for ever other gradients, or is given tangents of ever other layouts, loses those that it did not
/// use for longest.
constexpr size_t most_backwards = 64, most_orders_above = 16;

/// A backward for one combination of tangents and wanted gradients.
struct BackwardRecord {
  BackwardVariant variant;
  /// which saved values it takes, then come the tangents that arrive
  std::vector<size_t> saved;
  std::vector<int64_t> gradients;  ///< for each gradient input, which result it is; -1: none
  std::optional<Graph> graph;      ///< none: that of the order's halves
  const Graph& graph_in(const Partition& halves) const { return graph ? *graph : halves.backward; }
};

/// Of the first order the forward is the program itself. The forward of every other is the backward of the
/// one below, called under create_graph: its results are gradients that have a backward in turn.
struct OrderRecord {
  Partition halves;     ///< without a backward that is empty and nothing is saved
  size_t returned = 0;  ///< results of the forward that are not saved values
  BackwardVariant expected;
  std::vector<size_t> marked;  ///< places of what is saved since the program marked it must_save, in order
  bool has_expected = true;    ///< false: the halves are there for what they save

  // How the forward of a higher order is called; empty for the first.
  BackwardVariant variant;  ///< of the order below
  /// which values saved by the order below it takes, then come the tangents that arrive
  std::vector<size_t> taken;
  /// for each gradient input of the order below, which result it is; -1: none
  std::vector<int64_t> gradients;
  std::vector<size_t> differentiable;  ///< results with a history
};

}  // namespace tandem
