/// One operator call of a flattened graph, bound to registers ahead of time.
#pragma once

#include <tandem/graph.h>

#include <ATen/core/stack.h>

#include <memory>

namespace tandem {

/// Where a call finds a tensor: in a register, or bound ahead (a constant of the graph; undefined for a
/// none).
struct TensorSlot {
  int32_t index = -1;
  bool last = false;  ///< nothing reads the register afterwards
  at::Tensor bound = {};

  const at::Tensor& peek(const at::Tensor* registers) const { return index >= 0 ? registers[index] : bound; }
  at::Tensor take(at::Tensor* registers) const {
    return last ? std::move(registers[index]) : peek(registers);
  }
  void release(at::Tensor* registers) const {
    if (last) registers[index].reset();
  }
};

using ArgumentSlot = std::variant<TensorSlot, std::vector<TensorSlot>, c10::IValue>;
/// The register, or registers for a list, that take a result; -1 for one that nothing reads.
using ResultSlot = std::variant<int32_t, std::vector<int32_t>>;

/// Everything that is known about a call before it runs.
struct CallSite {
  c10::OperatorHandle op;
  std::vector<ArgumentSlot> arguments = {};
  std::vector<ResultSlot> results = {};
  /// a written argument and the register that it is from then on
  std::vector<std::pair<TensorSlot, int32_t>> writes = {};
  /// it draws from a state, of a generator of this device
  std::optional<c10::Device> draws_on = {};
  TensorSlot state = {};
  /// the register that takes the state behind the draw
  int32_t next_state = -1;
};

class Call {
 public:
  virtual ~Call() = default;
  /// Reads and frees argument registers, runs the operator, fills result registers. `stack` is scratch, empty
  /// before and after.
  virtual void run(at::Tensor* registers, torch::jit::Stack& stack) const = 0;
};

/// A call through the operator's boxed kernel: works for every operator.
std::unique_ptr<Call> make_boxed_call(CallSite site);

/// A call with the operator's C++ signature, its constants unpacked ahead; null where the signature has no
/// row.
std::unique_ptr<Call> make_unboxed_call(const CallSite& site);

/// `call`, which was made of this site, drawing from the site's state.
std::unique_ptr<Call> make_replayed_call(std::unique_ptr<Call> call, const CallSite& site);

/// aten::add.Tensor into the memory of its argument `into` (0 or 1), where at run time nobody else holds it.
std::unique_ptr<Call> make_accumulating_call(const CallSite& site, size_t into);

}  // namespace tandem
