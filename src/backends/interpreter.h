/// Runs a graph node by node through libtorch's own operators.
#pragma once

#include "backends/calls.h"

namespace tandem {

/// How long the interpreter holds on to a tensor.
enum class Lifetime : uint8_t {
  LastUse,  ///< freed where nothing reads it any more
  /// register i is value i, and every node's results can be looked at after it ran
  WholeRun,
};

/// Makes the call of a node itself, or gives null: then it is one of libtorch's operator.
using MakeCall = std::function<std::unique_ptr<Call>(const CallSite&)>;

/// A graph flattened into calls on a register file. Immutable: any number of threads may run it at once.
class Interpreter {
 public:
  explicit Interpreter(const Graph& graph, Lifetime lifetime = Lifetime::LastUse, const MakeCall& own = {});

  /// Empties `inputs`; runs below autograd, so that no autograd kernel is entered.
  Tensors run(Tensors&& inputs) const;

  /// The same, calling `after(node index, registers)` behind each node.
  Tensors run(Tensors&& inputs, const std::function<void(size_t, const at::Tensor*)>& after) const;

 private:
  class Builder;
  template <class After>
  Tensors interpret(Tensors&& inputs, After&& after) const;

  std::vector<int32_t> inputs_;  ///< the register of each input, -1 for one that nothing reads
  std::vector<TensorSlot> outputs_;
  std::vector<std::unique_ptr<Call>> calls_;
  size_t register_count_ = 0;
};

}  // namespace tandem
