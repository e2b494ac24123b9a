#include "trace/saved_aliases.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <mutex>

#include "base/autograd.h"
#include "base/host.h"
#include "trace/failure.h"
#include "trace/saved_hooks.h"
#include "trace/tracer.h"

namespace tandem {
namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;

/// A node saves behind being made, and before the next one is.
uint64_t youngest_node() { return at::sequence_number::peek() - 1; }

/// In-place operators save a clone of what they write, which has a node of its own.
bool is_clone_of_its_own(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta && meta->grad_fn_ && meta->grad_fn_->sequence_nr() == youngest_node() &&
         meta->grad_fn_->name() == "CloneBackward0";
}

/// A node gives its own results the history that they had, whatever became of that.
bool is_result_of_its_own(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta && meta->grad_fn_ && meta->grad_fn_->sequence_nr() == youngest_node();
}

class SavedAlias final : public SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor& tensor) override {
    FakeImpl* fake = as_fake(tensor);
    if (is_clone_of_its_own(tensor)) Tracer::current()->note_saving(youngest_node() - 1);
    // what was written there is data from now on
    if (fake && fake->lent_memory()) Tracer::current()->settle_output(tensor);
    if (fake)
      likeness_.emplace(fake->likeness());
    else
      real_ = tensor;
    if (fake && tensor.requires_grad() && !is_result_of_its_own(tensor)) fake->is_saved = true;
    if (fake && !tensor.requires_grad())
      constant_ = c10::weak_intrusive_ptr<FakeImpl>(FakePtr::reclaim_copy(fake));
    // What a custom function saves of a captured tensor is the real one, and writes are counted by its fake.
    versions_ =
        (fake || tensor.unsafeGetTensorImpl()->is_wrapped_number() ? tensor : Tracer::current()->twin(tensor))
            .unsafeGetTensorImpl()
            ->version_counter();
    version_ = versions_.enabled() ? versions_.current_version() : 0;
  }

  /// libtorch asks tensors with hooks for no version.
  at::Tensor call_unpack_hook() override {
    const at::Tensor alias = likeness_ ? likeness_->make() : real_;
    TORCH_CHECK(!versions_.enabled() || versions_.current_version() == version_,
                "one of the variables needed for gradient computation has been modified by an inplace "
                "operation: a tensor of sizes ",
                alias.sizes(), " is at version ", versions_.current_version(), "; expected version ",
                version_, " instead");
    if (begins_to_require_grad())
      refuse<RunEagerly>("a tensor begins to require grad after autograd saved it as a constant");
    return alias;
  }

 private:
  /// Where it has no hooks libtorch gives back the tensor itself, as it is by then; what hooks give back
  /// stays a constant.
  bool begins_to_require_grad() const {
    const FakePtr constant = constant_ ? constant_->lock() : FakePtr();
    return constant && constant->requires_grad();
  }

  std::optional<c10::weak_intrusive_ptr<FakeImpl>> constant_;
  /// made into a tensor only when a backward asks: it must own neither the program's tensors nor, being saved
  /// by its own node, itself
  std::optional<FakeImpl::Likeness> likeness_;
  at::Tensor real_;
  c10::VariableVersion versions_;
  uint32_t version_ = 0;
};

/// Stands before the engine of this process, which goes on doing all the work, and sees what a traced program
/// asks of it.
class AliasingEngine final : public Engine {
 public:
  explicit AliasingEngine(Engine& inner) : inner_(inner) {}

  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    Tracer* tracer = Tracer::current();
    const bool is_program = tracer && tracer->runs_program();
    if (is_program) tracer->note_saving(youngest_node());
    if (auto set = make_saved_hooks()) return set;
    if (is_program && !python_saved_hooks_are_set()) return std::make_unique<SavedAlias>();
    if (is_program && !(sets_checkpoint_in_host() && sets_checkpoint_in_host()()))
      tracer->note_unknown_hooks();
    return inner_.get_default_saved_variable_hooks();
  }
  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs, bool keep_graph,
                                         bool create_graph, bool accumulate_grad,
                                         const torch::autograd::edge_list& outputs) override {
    if (Tracer* tracer = Tracer::current(); tracer && tracer->runs_program()) tracer->note_inner_gradient();
    return inner_.execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& task, NodePtr root,
      torch::autograd::InputBuffer&& buffer) override {
    return inner_.execute_with_graph_task(task, std::move(root), std::move(buffer));
  }
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return inner_.make_anomaly_metadata();
  }

 private:
  Engine& inner_;
};

std::atomic<Engine*> aliasing = nullptr;

}  // namespace

/// A host that is loaded later, as Python may be, brings an engine of its own.
void save_aliases() {
  if (&Engine::get_default_engine() == aliasing.load()) return;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  Engine& now = Engine::get_default_engine();
  if (&now == aliasing.load()) return;
  aliasing = new AliasingEngine(now);  // never destroyed: threads may still ask while the process ends
  torch::autograd::set_default_engine_stub([]() -> Engine& { return *aliasing.load(); });
}

}  // namespace tandem
