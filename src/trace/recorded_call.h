/// One operator call on its way from the dispatcher to a node of the graph.
#pragma once

#include "ops/facts.h"
#include "shapes/shapes.h"
#include "trace/tracer.h"

namespace tandem {

/// The steps of recording it, each a function: what it is given in record_arguments.cpp, what it makes in
/// record_results.cpp, what refuses a call that is not compiled in refusals.cpp.
class RecordedCall {
 public:
  RecordedCall(Tracer& tracer, const c10::OperatorHandle& op, torch::jit::Stack& stack,
               bool autograd_sees_kernel)
      : tracer_(tracer),
        autograd_sees_kernel_(autograd_sees_kernel),
        op_(op),
        schema_(op.schema()),
        facts_(facts(op)),
        stack_(stack),
        first_(stack.size() - schema_.arguments().size()),
        node_{op} {}

  void run();

 private:
  using Storages = c10::SmallVector<int32_t, 4>;

  void answer_or_refuse();
  bool answer_knowing();
  bool forget_check_for_nan();

  void read_arguments();
  void read_argument(size_t i, const c10::IValue& argument);
  void read_constant(size_t i, const c10::IValue& argument);
  bool read_number(const c10::IValue& argument);
  bool read_numbers(const c10::IValue& argument);
  at::Tensor read_element(const at::Tensor& tensor, std::vector<Value>& values);
  at::Tensor read_tensor(const at::Tensor& tensor, Operand& operand);
  void find_device();

  void prepare_written_arguments();
  at::Tensor fake_of(const at::Tensor& tensor) const;
  at::Tensor prepare_written(const at::Tensor& tensor);
  bool is_hidden_write(int i) const {
    return std::find(facts_.hidden_writes.begin(), facts_.hidden_writes.end(), i) !=
           facts_.hidden_writes.end();
  }
  bool hidden_writes_happen() const;
  void note_writes();
  void count_list_writes() const;

  void push_results(const Devices& devices);
  at::Tensor wrap_result(const at::Tensor& meta, c10::Device device, Operand& operand);
  bool lies_on(const Storages& storages, const at::Tensor& meta) const;
  bool is_argument(const at::Tensor& meta) const;
  void lend_memory(FakeImpl& fake);
  void append_node();

  bool drops_nothing() const;
  bool has_own_generator() const;
  void find_state();
  void draw_again(Value state);
  void refuse_other_memory() const;
  void refuse_sizes_behind_autograd() const;
  void refuse_views_of_leaf_views() const;
  void refuse_operators_without_formula() const;
  void refuse_results_over_operands() const;
  void refuse_masks() const;
  void refuse_mixed_devices(const FakeImpl& fake) const;
  void refuse_resized_result(const at::Tensor& result, Value before) const;
  void refuse_result_laid_out_like_copies() const;
  void refuse_other_sizes_of_a_capture(const at::Tensor& fake) const;
  void refuse_list_write_to_view(const at::Tensor& tensor) const;
  bool reads_where_it_writes() const;
  bool is_input(int32_t storage) const;

  Tracer& tracer_;
  const bool autograd_sees_kernel_;  ///< nothing above has told it to look away
  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  const OpFacts& facts_;
  torch::jit::Stack& stack_;
  const size_t first_;
  torch::jit::Stack metas_;
  Node node_;
  uint64_t grads_ = 0;  ///< which of the first 64 tensors that it reads require grad
  size_t reads_ = 0;
  FakeImpl* reference_ = nullptr;  ///< the argument whose device the results live on
  std::optional<c10::Device> asked_device_;
  c10::Device device_ = c10::kCPU;
  c10::SmallVector<at::Tensor, 4> written_, made_;
  /// in inference mode: memory of arguments that are no inference tensors
  Storages normal_storages_;
  Storages zero_storages_;  ///< of arguments that are zero tensors; views of them are
};

}  // namespace tandem
