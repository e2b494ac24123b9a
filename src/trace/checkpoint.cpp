// Checkpoints: a function keeps its inputs, and what autograd saves in it is made anew when a backward asks.
// Autograd's graph is that of the first call, so parameters, hooks and derivatives of every order are as
// without; only the saved tensors are missing in it. Traced, the second call is recorded as any operator of a
// backward.
#include <tandem/memory.h>

#include <ATen/Functions.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <mutex>

#include "base/autograd.h"
#include "trace/saved_aliases.h"
#include "trace/saved_hooks.h"
#include "trace/surroundings.h"
#include "trace/tracer.h"

namespace tandem {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::SavedVariableHooks;
using Run = std::function<void(const Tensors&, void*)>;

/// One call of a checkpoint, owned by the tensors that autograd believes it has saved in it.
class Region : public std::enable_shared_from_this<Region> {
 public:
  Region(Run run, const Tensors& inputs) : run_(std::move(run)), around_(inputs) {
    // By autograd's own means: later writes to them are errors, and a checkpoint around this one drops them.
    for (const at::Tensor& input : inputs) inputs_.emplace_back(input, /*is_output=*/false);
  }

  void run_first(const Tensors& inputs, void* result);

  /// The place of one that the first call saves.
  size_t drop(const at::Tensor& tensor) {
    saved_.push_back({tensor.sizes().vec(), tensor.scalar_type(), tensor.device()});
    return saved_.size() - 1;
  }
  /// Of another call.
  at::Tensor keep(const at::Tensor& tensor);
  /// What the call for this backward has saved at a place: each is asked for once, and belongs to whoever
  /// asked.
  at::Tensor take(size_t place);

 private:
  struct Likeness {
    std::vector<int64_t> sizes;
    at::ScalarType dtype;
    at::Device device;
  };
  struct Kept {
    at::Tensor tensor;
    uint32_t version = 0;
  };
  void run_again(int backward);

  const Run run_;
  const Surroundings around_;
  std::vector<SavedVariable> inputs_;
  std::vector<Likeness> saved_;
  bool has_run_ = false;

  std::mutex mutex_;
  int backward_ = -1;  ///< that `kept_` was computed for, or none
  std::vector<Kept> kept_;
};

struct Dropped final : SavedVariableHooks {
  explicit Dropped(std::shared_ptr<Region> region) : region_(std::move(region)) {}
  void call_pack_hook(const at::Tensor& tensor) override { place_ = region_->drop(tensor); }
  at::Tensor call_unpack_hook() override { return region_->take(place_); }

 private:
  const std::shared_ptr<Region> region_;
  size_t place_ = 0;
};

/// The function may take a gradient of its own.
struct ComputedAgain final : SavedVariableHooks {
  explicit ComputedAgain(Region& region) : region_(region) {}
  void call_pack_hook(const at::Tensor& tensor) override { tensor_ = region_.keep(tensor); }
  at::Tensor call_unpack_hook() override { return tensor_; }

 private:
  Region& region_;
  at::Tensor tensor_;
};

void Region::run_first(const Tensors& inputs, void* result) {
  const SavedHooks hooks([this] { return std::make_unique<Dropped>(shared_from_this()); });
  run_(inputs, result);
  has_run_ = true;
}

at::Tensor Region::keep(const at::Tensor& tensor) {
  const at::Tensor alias = tensor.detach();
  if (const size_t place = kept_.size(); place < saved_.size()) {
    const Likeness& first = saved_[place];
    TORCH_CHECK(tensor.sizes() == first.sizes && tensor.scalar_type() == first.dtype &&
                    tensor.device() == first.device,
                "tandem::checkpoint: the function saves a tensor of ", first.dtype, " and sizes ",
                first.sizes, " for its backward where it is called first, and one of ", tensor.scalar_type(),
                " and sizes ", tensor.sizes(), " where it is called again; it must do the same each time");
  }
  kept_.push_back({alias, version_of(alias)});
  return alias;
}

void Region::run_again(int backward) {
  const c10::AutoGradMode grad_mode(true);
  Tensors inputs;
  for (const SavedVariable& saved : inputs_) {
    const at::Tensor input = saved.unpack();
    // Hooks that the function registers on its inputs are there already.
    inputs.push_back(input.requires_grad() ? at::alias(input) : input);
  }
  kept_.clear();
  backward_ = -1;
  const SurroundingsAgain around(around_);
  const SavedHooks hooks([this] { return std::make_unique<ComputedAgain>(*this); });
  run_(inputs, nullptr);
  TORCH_CHECK(!has_run_ || kept_.size() == saved_.size(), "tandem::checkpoint: the function saves ",
              saved_.size(), " tensors for its backward where it is called first, and ", kept_.size(),
              " where it is called again; it must do the same each time");
  backward_ = backward;
}

at::Tensor Region::take(size_t place) {
  std::lock_guard lock(mutex_);
  const int backward = torch::autograd::get_current_graph_task_id();
  const bool is_there =
      backward >= 0 && backward == backward_ && place < kept_.size() && kept_[place].tensor.defined();
  if (!is_there) run_again(backward);
  const Kept found = std::exchange(kept_.at(place), {});
  TORCH_CHECK(version_of(found.tensor) == found.version,
              "one of the variables needed for gradient computation has been modified by an inplace "
              "operation in a checkpoint: a tensor of sizes ",
              found.tensor.sizes(), " is at version ", version_of(found.tensor), "; expected version ",
              found.version, " instead");
  return found.tensor;
}

}  // namespace

void detail::run_checkpoint(Run run, const Tensors& inputs, void* result) {
  if (!c10::GradMode::is_enabled()) return run(inputs, result);
  save_aliases();
  Tracer* const tracer = Tracer::current();
  const bool is_program = tracer && tracer->runs_program();
  const size_t first = is_program ? tracer->graph().nodes().size() : 0;
  std::make_shared<Region>(std::move(run), inputs)->run_first(inputs, result);
  if (is_program) tracer->note_checkpoint(first);
}

}  // namespace tandem
