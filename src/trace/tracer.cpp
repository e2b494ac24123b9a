#include "trace/tracer.h"

#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>

#include "base/autograd.h"
#include "base/host.h"
#include "shapes/shapes.h"
#include "trace/engine_sums.h"
#include "trace/failure.h"
#include "trace/other_threads.h"
#include "trace/refuse.h"
#include "trace/saved_aliases.h"
#include "trace/seed_watch.h"

namespace tandem {

thread_local Tracer* current_tracer = nullptr;

Tracer* Tracer::current() { return current_tracer; }

/// While it lives, this thread records into a tracer; autograd stays on the thread, so that CUDA's backward
/// is recorded too.
class Recording {
 public:
  Recording(Tracer& tracer, Phase phase, bool lifts)
      : tracer_(tracer),
        include_(lifts ? with_lifting : c10::DispatchKeySet(c10::DispatchKey::Fake)),
        previous_(current_tracer) {
    tracer.phase_ = phase;
    current_tracer = &tracer;
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }
  ~Recording() {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(multithreading_);
    current_tracer = previous_;
    tracer_.phase_ = Phase::Forward;
  }

 private:
  Tracer& tracer_;
  AroundTrace around_;
  NotedFormulas formulas_;
  c10::impl::IncludeDispatchKeyGuard include_;
  Tracer* previous_;
  bool multithreading_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
  static constexpr c10::DispatchKeySet with_lifting{c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit};
};

namespace {

std::atomic<uint64_t> tracer_count = 0;

}  // namespace

Tracer::Tracer(bool record_locations) : id_(++tracer_count), record_locations_(record_locations) {}

int32_t Tracer::storage_id(const c10::Storage& meta_storage) {
  auto [found, fresh] =
      storage_ids_.try_emplace(meta_storage.unsafeGetStorageImpl(), int32_t(storages_.size()));
  if (fresh) storages_.push_back(meta_storage);
  return found->second;
}

Value Tracer::add_value(const at::Tensor& meta, c10::Device device) {
  TensorMeta description = describe(meta, device);
  description.storage = storage_id(meta.unsafeGetTensorImpl()->unsafe_storage());
  return graph_.add_value(std::move(description));
}

at::Tensor Tracer::wrap(at::Tensor meta, c10::Device device) {
  Value value = add_value(meta, device);
  auto fake = c10::make_intrusive<FakeImpl>(std::move(meta), device, value, id_);
  if (!differentiating_) made_.emplace_back(fake);
  return at::Tensor(std::move(fake));
}

at::Tensor Tracer::add_tangent(const TensorMeta& like) {
  at::Tensor tangent = wrap(make_meta(like), like.device);
  if (like.requires_grad) {
    tangent.set_requires_grad(true);
    graph_.meta(value_of(tangent)).requires_grad = true;
  }
  graph_.add_input(value_of(tangent));
  return tangent;
}

Value Tracer::value_of(const at::Tensor& fake) const {
  FakeImpl* impl = as_fake(fake);
  if (!impl || impl->tracer != id_)
    throw Error("a tensor of another trace was used inside this one; it has no data here");
  return impl->value;
}

void Tracer::record(const std::function<void()>& program) {
  save_aliases();
  const NotedCopies noted(made_);
  Recording recording(*this, Phase::Forward, /*lifts=*/true);
  const OtherThreads threads(id_);
  program();
  note_known();
  if (threads.were_met()) throw RunEagerly("it computes in threads of its own");
}

namespace {

/// Up while it lives.
class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flag() { flag_ = false; }
  Flag(const Flag&) = delete;

 private:
  bool& flag_;
};

/// Draws of a backward ask this watch while it lives.
class Asked {
 public:
  Asked(SeedWatch*& asked, SeedWatch* seeds) : asked_(asked) { asked_ = seeds; }
  ~Asked() { asked_ = nullptr; }
  Asked(const Asked&) = delete;

 private:
  SeedWatch*& asked_;
};

/// Reading a tensor notes that it requires grad; what the forward recorded must not change with the backwards
/// that are taken of it.
class KeptMarks {
 public:
  explicit KeptMarks(Graph& graph) : graph_(graph) {
    for (size_t id = 0; id < graph.value_count(); ++id)
      marks_.push_back(graph.meta(Value{int32_t(id)}).requires_grad);
  }
  ~KeptMarks() {
    for (size_t id = 0; id < marks_.size(); ++id) graph_.meta(Value{int32_t(id)}).requires_grad = marks_[id];
  }

 private:
  Graph& graph_;
  std::vector<bool> marks_;
};

}  // namespace

Tensors Tracer::gradients(Phase phase, const Tensors& outputs, const Tensors& inputs,
                          const Tensors& tangents) {
  KeptMarks kept(graph_);
  const Flag differentiating(differentiating_);
  // libtorch's own nodes hold fakes alone.
  Recording recording(*this, phase, /*lifts=*/met_saved_tensor_hooks_ || met_own_code_ ||
                                        (met_branches_ && phase == Phase::Forward));
  // Eager calls the backward outside the region in which the forward was autocast.
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const std::shared_ptr<void> around =
      around_backwards_ && (met_saved_tensor_hooks_ || met_own_code_) ? around_backwards_() : nullptr;
  last_failure() = nullptr;
  std::optional<SeedWatch> seeds;
  if (met_saved_tensor_hooks_ || met_own_code_) seeds.emplace(Tensors(), draws_);
  const Asked asked(seeds_, seeds ? &*seeds : nullptr);
  Tensors found;
  try {
    found = torch::autograd::grad(outputs, inputs, tangents, /*retain_graph=*/true,
                                  /*create_graph=*/phase == Phase::Forward, /*allow_unused=*/true);
  } catch (...) {
    rethrow_refusal();
    throw;
  }
  rethrow_refusal();
  if (seeds && seeds->was_set())
    throw RunEagerly("a backward of the function's seeds a random number generator, or sets its state");
  // A custom function may return what it captured, or what it made of nothing.
  for (at::Tensor& gradient : found) {
    if (!gradient.defined()) continue;
    if (!as_fake(gradient)) gradient = twin(gradient);
    settle_output(gradient);
  }
  return found;
}

at::Tensor Tracer::record_tangent(Phase phase, const std::function<at::Tensor()>& make) {
  KeptMarks kept(graph_);
  const Flag differentiating(differentiating_);
  Recording recording(*this, phase, /*lifts=*/false);
  const c10::AutoGradMode grad_mode(phase == Phase::Forward);
  return make();
}

at::Tensor Tracer::add_end(const TensorMeta& like) {
  const Flag differentiating(differentiating_);
  return wrap(make_meta(like), like.device);
}

size_t Tracer::recorded_before(uint64_t sequence_number) const {
  return size_t(std::upper_bound(autograd_clock_.begin(), autograd_clock_.end(), sequence_number) -
                autograd_clock_.begin());
}

const Node* Tracer::call_of(const torch::autograd::Node& node) const {
  const size_t call = recorded_before(node.sequence_nr());
  return call < autograd_clock_.size() && call < graph_.nodes().size() ? &graph_.nodes()[call] : nullptr;
}

Tensors Tracer::differentiate(const Tensors& outputs, const Tensors& inputs, const Tensors& tangents) {
  return gradients(Phase::Backward, outputs, inputs, tangents);
}

Tensors Tracer::differentiate_keeping_graph(const Tensors& outputs, const Tensors& inputs,
                                            const Tensors& tangents) {
  return gradients(Phase::Forward, outputs, inputs, tangents);
}

std::vector<Lifted> Tracer::lift_arguments(size_t count, torch::jit::Stack& stack) {
  std::vector<Lifted> alone;
  auto lift = [this](const at::Tensor& tensor) {
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      const at::Tensor number = met_symbols_ && symbol_in_host() ? symbol_in_host()(tensor) : at::Tensor();
      return number.defined() ? number : tensor;
    }
    at::Tensor fake = twin(tensor);
    // A custom function asks the real tensor whether it requires grad, and its operators run as these do.
    if (!differentiating_ && !c10::GradMode::is_enabled() && fake.requires_grad() && !tensor.requires_grad())
      throw RunEagerly(
          "a captured tensor that was given a history by a write is read under no_grad, or by a custom "
          "function");
    return fake;
  };
  auto is_real = [](const at::Tensor& tensor) {
    return tensor.defined() && !tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Fake);
  };
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    c10::IValue& argument = stack[i];
    if (argument.isTensor()) {
      if (!is_real(argument.toTensor())) continue;
      alone.push_back({argument.toTensor(), lift(argument.toTensor())});
      argument = alone.back().fake;
    } else if (argument.isTensorList()) {
      auto list = argument.toTensorList();
      if (std::none_of(list.begin(), list.end(), [&](const auto& t) { return is_real(t); })) continue;
      c10::List<at::Tensor> lifted;
      for (const at::Tensor& t : argument.toTensorVector()) lifted.push_back(is_real(t) ? lift(t) : t);
      argument = lifted;
    } else if (argument.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> lifted;
      for (const std::optional<at::Tensor>& t : argument.toOptionalTensorVector())
        lifted.push_back(t && is_real(*t) ? lift(*t) : t);
      argument = lifted;
    }
  }
  return alone;
}

Value Tracer::settle_output(const at::Tensor& output) {
  FakeImpl* fake = as_fake(output);
  if (fake && fake->tracer == id_ && fake->lent_memory()) adopt_written_memory(*fake);
  return value_of(output);
}

void Tracer::truncate(size_t nodes, size_t inputs) {
  graph_.nodes().erase(graph_.nodes().begin() + int64_t(nodes), graph_.nodes().end());
  if (inputs < inputs_.size()) {
    inputs_.erase(inputs_.begin() + int64_t(inputs), inputs_.end());
    index_twins();
  }
  std::vector<Value> left;
  for (const TracedInput& input : inputs_) left.push_back(input.value);
  graph_.set_inputs(std::move(left));
}

void Tracer::resume(const std::vector<Node>& nodes, const std::vector<Value>& tangents) {
  graph_.nodes().insert(graph_.nodes().end(), nodes.begin(), nodes.end());
  for (Value tangent : tangents) graph_.add_input(tangent);
}

}  // namespace tandem
