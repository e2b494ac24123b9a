// Which fakes a program still owns when its trace has ended.
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include "trace/tracer.h"

namespace tandem {
namespace {

/// References that are accounted for.
class Owners {
 public:
  void add(const c10::TensorImpl* impl) { ++known_[impl]; }
  void add(const at::Tensor& tensor) {
    if (tensor.defined()) add(tensor.unsafeGetTensorImpl());
  }

  /// What autograd keeps beside a tensor: the tensor that it is a view of, its gradient, and the tensor
  /// itself where gradients gather in it.
  void add_what_belongs_to(const at::Tensor& tensor) {
    auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
    if (!meta) return;
    add(meta->grad_);
    if (auto* view = torch::autograd::impl::get_view_autograd_meta(tensor)) {
      has_functions_ = has_functions_ || (view->has_bw_view() && view->get_backward_view().has_view_fn());
      if (view->has_bw_view()) add(view->get_backward_view().base_);
      if (view->has_fw_view() && !view->shared_view_info()) add(view->get_forward_view().base_);
    }
    const NodePtr end = torch::autograd::impl::try_get_grad_accumulator(tensor);
    if (auto* gathers = dynamic_cast<torch::autograd::AccumulateGrad*>(end.get())) add(gathers->variable);
  }

  /// Whether views know functions that make them anew, and back, as complex ones do: these own tensors that
  /// nobody can ask them for.
  bool has_functions() const { return has_functions_; }

  size_t of(const c10::TensorImpl* impl) const {
    auto found = known_.find(impl);
    return found == known_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<const c10::TensorImpl*, size_t> known_;
  bool has_functions_ = false;
};

}  // namespace

std::vector<FakePtr> Tracer::owned_by_program(const std::vector<const c10::TensorImpl*>& ours) {
  Owners owners;
  for (const c10::TensorImpl* impl : ours) owners.add(impl);
  for (const TracedInput& input : inputs_) {
    owners.add(input.leaf);
    owners.add(input.visible);
  }
  for (const auto& [real, fake] : stand_ins_) owners.add(fake);
  std::vector<FakePtr> alive;
  for (const auto& weak : std::exchange(made_, {}))
    if (FakePtr fake = weak.lock()) alive.push_back(std::move(fake));
  for (const FakePtr& fake : alive) made_.emplace_back(fake);
  for (const FakePtr& fake : alive) {
    owners.add(fake.get());
    owners.add_what_belongs_to(at::Tensor(fake));
  }
  met_view_functions_ = met_view_functions_ || owners.has_functions();
  std::erase_if(alive, [&](const FakePtr& fake) {
    return fake.use_count() <= owners.of(fake.get()) + references_of_wrapper(*fake);
  });
  return alive;
}

void Tracer::drop_fakes() {
  for (TracedInput& input : inputs_) {
    input.leaf = input.visible = at::Tensor();
    input.end = nullptr;
  }
  stand_ins_.clear();
}

}  // namespace tandem
