/// The autograd graph of a traced function as text: programs of equal operators may have different gradients,
/// and this is where they differ.
#pragma once

#include "aot/traced.h"

namespace tandem {

struct HistoryText {
  /// where tensors that leave the function come from, then every node behind them, a line each
  std::string text;
  bool has_custom_functions = false;
  /// the first thing behind them that no text can say, as the end of a sentence; empty when there is none
  std::string obstacle;
};

/// Nodes are numbered in the order in which a walk from the outputs meets them, so that equal programs have
/// equal texts in every process.
HistoryText describe_history(const Traced& traced, const Plan& plan);

}  // namespace tandem
