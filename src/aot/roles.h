/// What becomes of each input and output of a call, as the run time goes by it; users are told by a Contract.
#pragma once

#include <tandem/contract.h>

namespace torch::autograd {
enum class CreationMeta : uint8_t;
}

namespace tandem {

/// One view operator between a base and a view of it; `result` says which of the operator's results goes on.
struct ViewStep {
  c10::OperatorHandle op;
  /// the first tensor argument is the base and is left out as a none
  std::vector<Operand> arguments;
  size_t base_argument = 0;
  size_t result = 0;
};

/// One tensor that goes in: an argument of the call, or something the callable captured.
struct InputRole {
  Value value;
  std::string name;  ///< "argument 0", "parameter fc.weight", "captured tensor 2", ...
  bool captured = false;
  bool stays = false;  ///< an argument that Options::static_arguments names
  bool requires_grad = false;
  bool data_written = false;      ///< its elements change
  bool metadata_written = false;  ///< its sizes, strides or storage change
  bool write_kept = false;        ///< the write is part of the forward graph, not of the epilogue
  /// autograd sees the write: gradients of the input flow through what was written
  bool write_recorded = false;
  bool starts_requiring_grad = false;  ///< requires_grad_() inside the function
  bool retains_grad = false;           ///< retain_grad() inside the function
  /// what changes its sizes and strides, in order: operators that write them
  std::vector<ViewStep> metadata_steps;
  /// how many writes libtorch counts: none of running statistics, which it writes silently
  size_t versions = 0;
  /// shares written memory with other inputs: the graph takes the tensor that all of them are views of, this
  /// input
  std::optional<size_t> view_of = {};
  /// data_written and not kept: which output of the forward graph holds the new contents
  size_t returned = 0;
  /// Whether it requires grad when the function is done with it.
  bool differentiated() const { return requires_grad || write_recorded || starts_requiring_grad; }
};

/// One tensor that comes out.
struct OutputRole {
  Value value;
  OutputSource source = OutputSource::Fresh;
  /// Input, ViewOfInput: which input; otherwise which output of the forward graph
  size_t base = 0;
  std::vector<ViewStep> steps;         ///< the way from the base; no steps: the base itself
  std::optional<size_t> same_as = {};  ///< the earlier output that is this very tensor
  bool requires_grad = false;
  bool retains_grad = false;  ///< retain_grad() inside the function
  bool tracked = false;       ///< a view that is made with grad mode on
  /// of a view that is not, though the program made it so: its base required no grad yet
  std::optional<torch::autograd::CreationMeta> made_as = {};
  /// a ViewOfInput whose gradient reaches it through the compiled node, as a custom function's does
  bool differentiable = false;
};

/// Of all inputs, outputs and tangents, in the order of a Contract.
struct Roles {
  std::vector<InputRole> inputs;
  std::vector<OutputRole> outputs;
  std::vector<Value> tangents;
};

/// What users and backends are told of them.
Contract contract_of(const Roles& roles);

}  // namespace tandem
