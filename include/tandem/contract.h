/// What a compiled function promises about its inputs and outputs, found while tracing.
#pragma once

#include <tandem/graph.h>

#include <optional>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] tandem {

/// Where an input of the forward graph comes from.
enum class InputSource : uint8_t {
  Argument,        ///< of the call
  StaticArgument,  ///< one that Options::static_arguments names
  Capture,         ///< something that the callable captured
};

/// What the function does to the elements of an input.
enum class InputWrite : uint8_t {
  None,
  InGraph,   ///< the forward graph writes them
  Returned,  ///< the forward graph returns new ones, which are copied into the input behind it
};

/// Where an output of the call comes from.
enum class OutputSource : uint8_t {
  Fresh,         ///< a tensor that the graph returns
  Input,         ///< an input itself
  ViewOfInput,   ///< rebuilt on the caller's own tensor
  ViewOfOutput,  ///< rebuilt on another tensor that the graph returns
  None,          ///< undefined in eager too
};

/// All that goes in and comes out of a call. Values are those of the trace.
struct Contract {
  struct Input {
    Value value;
    std::string name;  ///< "argument 0", "parameter fc.weight", "captured tensor 2", ...
    InputSource source = InputSource::Argument;
    InputWrite write = InputWrite::None;
    size_t returned = 0;    ///< InputWrite::Returned: which output of the forward graph
    bool recorded = false;  ///< the write is differentiated: gradients flow through what was written
    bool reshaped = false;  ///< its sizes, strides or storage change
    bool requires_grad = false;
    bool starts_requiring_grad = false;  ///< requires_grad_() inside the function
    /// shares written memory with other inputs: the graph takes the tensor that all of them are views of,
    /// this input
    std::optional<size_t> view_of = {};
  };

  struct Output {
    Value value;
    OutputSource source = OutputSource::Fresh;
    /// Input, ViewOfInput: which input; otherwise which output of the forward graph
    size_t base = 0;
    std::vector<std::string> views = {};  ///< the operators that lead from the base to it
    bool requires_grad = false;
  };

  /// in the order of the forward graph's inputs; behind them those that are views of one
  std::vector<Input> inputs;
  std::vector<Output> outputs;  ///< in the order in which the user sees them
  /// of which graph outputs, in the order of the joint graph's tangents
  std::vector<Value> tangents;
  /// In lines to read.
  std::string to_string() const;
};

}  // namespace tandem
