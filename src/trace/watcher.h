/// Comparing what a program does to real tensors with the record of what it did to fakes.
#pragma once

#include <ATen/core/stack.h>
#include <tandem/graph.h>

#include <functional>
#include <unordered_map>

#include "base/for_python.h"

namespace tandem {

/// Follows the operators of one run, one by one, behind autograd: which they are, which values feed them,
/// with which constants. Changes nothing of what they do.
class Watcher {
 public:
  /// `inputs` are the tensors that the run takes for the inputs of the record.
  Watcher(const Graph& record, const Tensors& inputs);

  /// Runs `program` on this thread and looks on; the tensors that it returns are those that the record's
  /// `outputs` stand for.
  void watch(const std::function<Tensors()>& program, const std::vector<Value>& outputs);

  /// The first thing that was another than in the record, in words; empty when all was the same.
  const std::string& difference() const { return difference_; }

  /// The one that looks on in this thread, or null.
  TANDEM_FOR_PYTHON static Watcher* current();

  /// For the dispatcher's fallback: an operator on its way to its kernel.
  void see(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

 private:
  /// Where the memory lies that the record gives a number.
  struct Memory {
    /// held, so that no other memory gets its address
    c10::weak_intrusive_ptr<c10::StorageImpl> storage{c10::intrusive_ptr<c10::StorageImpl>()};
    int64_t offset = 0;  ///< of the run's tensors beyond the record's
  };

  void compare_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  void compare_argument(const Operand& recorded, const c10::IValue& argument, const std::string& name);
  void compare_tensor(Value recorded, const at::Tensor& tensor, const std::string& name);
  void compare_number(Value recorded, const c10::IValue& argument, const std::string& name);
  void follow_numbers();
  at::Tensor content(const Operand& recorded) const;
  bool is_number(Value value) const { return value && numbers_.count(value.id) > 0; }
  void compare_constant(const c10::IValue& recorded, const c10::IValue& argument, const std::string& name);
  void read_result(const Operand& recorded, const c10::IValue& result);
  void bind(Value value, const at::Tensor& tensor);
  const at::Tensor* constant(Value value) const;
  void differs(const std::string& how);
  bool is_sum_in_place(const c10::OperatorHandle& op) const;

  const Graph& record_;
  size_t next_ = 0;
  std::vector<Memory> memory_;  ///< by storage number
  std::vector<bool> is_input_;  ///< by storage number
  /// what the run must compute of those that it read from tensors, by value
  std::unordered_map<int32_t, at::Tensor> numbers_;
  std::string difference_;
};

}  // namespace tandem
