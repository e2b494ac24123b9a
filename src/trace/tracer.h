/// Runs a function on fakes and writes down every operator call that autograd makes of it, verbatim: views
/// stay views, writes stay writes.
#pragma once

#include <ATen/core/stack.h>
#include <tandem/graph.h>

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/for_python.h"
#include "base/autograd.h"
#include "base/verdicts.h"
#include "trace/draw_log.h"
#include "trace/fake.h"

namespace tandem {

struct OpFacts;
class SeedWatch;

/// A real tensor that goes into the graph: an argument of the call, or something the function captured.
struct TracedInput {
  at::Tensor real;
  at::Tensor leaf;  ///< the fake that gradients are taken of
  /// the fake that the program sees: the leaf, or a non-leaf made of it where the real one is no leaf
  at::Tensor visible;
  Value value;
  /// of a capture that requires grad, or of an argument that was computed: where gradients leave the trace
  NodePtr end = nullptr;
  bool captured = false;
  at::Tensor grad = {};  ///< that the real tensor had when it was met, where it was captured
  uint32_t version = 0;  ///< of `visible`, when the program got it
  /// the real one, and what it is a view of, when the trace met it
  bool required_grad = false, base_required_grad = false;
  bool also_captured = false;  ///< an argument that the program reached by itself as well
};

/// What autograd was told when an operator of the program was called.
struct AutogradOfCall {
  bool grad_mode;
  /// which of the first 64 tensors that it reads required grad: `requires_grad_` is no call of an operator
  uint64_t reads_grad;
};

/// What becomes of a value that the program has.
struct AutogradEvent {
  enum class Kind : uint8_t {
    Known,  ///< autograd has a history of it, or gathers gradients in it, once a node has made or written it
    Detached,  ///< in place
  };
  size_t before;  ///< which node of the program
  Value value;
  Kind kind;
};

/// A real tensor of the program's, and the fake that an operator is given in its place.
struct Lifted {
  at::Tensor real, fake;
};

/// Why tensors of this kind are not compiled (sparse, quantised, ...), or nothing.
std::optional<std::string> uncompiled_kind(const at::Tensor& tensor);

class Tracer {
 public:
  explicit Tracer(bool record_locations);
  Tracer(const Tracer&) = delete;

  /// Fake twins of the arguments, undefined where they are; tensors that overlap in memory get fakes that do,
  /// a tensor given twice gets one fake.
  Tensors add_arguments(const Tensors& reals);

  /// Runs `program` under recording, in the modes that the calling thread is in.
  void record(const std::function<void()>& program);

  /// Records the gradients of `outputs` along `tangents` with respect to `inputs`; undefined where there is
  /// none. The fake graph is kept.
  Tensors differentiate(const Tensors& outputs, const Tensors& inputs, const Tensors& tangents);
  /// The same, and the gradients carry an autograd graph of their own: what is recorded is the forward of
  /// another order.
  Tensors differentiate_keeping_graph(const Tensors& outputs, const Tensors& inputs, const Tensors& tangents);

  /// Records how a tangent is made of one that arrives, as part of a derivative: one that is differentiated
  /// in turn where the phase is Forward.
  at::Tensor record_tangent(Phase phase, const std::function<at::Tensor()>& make);

  /// A fake of this geometry that is a new input of the graph, and requires grad where the description says
  /// so.
  at::Tensor add_tangent(const TensorMeta& meta);

  /// The fake, which from now on stands for autograd's zeros without memory.
  at::Tensor as_zero(at::Tensor fake);

  /// A fake of this geometry where a history is cut: no operator makes it, and none reads it.
  at::Tensor add_end(const TensorMeta& meta);

  /// The fake that stands for a real tensor inside this trace, made when first asked for.
  at::Tensor twin(const at::Tensor& real);

  /// While the program runs, `fake` is what it gets for a real tensor that it captured.
  void stand_for(const at::Tensor& real, at::Tensor fake);

  /// Whether a real tensor was used inside this trace, or is an argument.
  bool has_met(const at::Tensor& real) const;

  /// Before the program runs: what gathers in these leaves counts as it is now, whenever the program comes to
  /// them.
  TANDEM_FOR_PYTHON void remember_gradients(const Tensors& leaves);
  /// Those of them that have other gradients now.
  Tensors leaves_with_other_gradients() const;
  /// They have those of before again; says whether one had another.
  bool restore_gradients() const;

  /// The value behind a fake of this tracer; throws Error for a fake of another one.
  Value value_of(const at::Tensor& fake) const;

  /// The program has ended: histories of its inputs lead no further than to their fakes.
  void leave_outside_histories();

  /// Captures that nobody outside the trace owns become constants of the graph, the others stay inputs; call
  /// it when the program's own tensors are gone.
  void settle_captures();

  /// Temporaries of the program whose memory may be gone are copies of it from now on.
  void take_snapshots();

  /// The value of something the program returned; memory that it filled through a pointer becomes a constant.
  Value settle_output(const at::Tensor& output);

  /// Lets go of the real tensors: arguments belong to one call, captures to the program.
  void release_real_tensors();
  /// Knows the captures again, in the order of `inputs()`.
  void hold_captures(const Tensors& captures);

  /// The fakes of the program's run that something besides autograd and the trace still owns; `ours` are
  /// references that the caller holds.
  std::vector<FakePtr> owned_by_program(const std::vector<const c10::TensorImpl*>& ours);
  /// Whether views own tensors in a way that cannot be counted.
  bool met_view_functions() const { return met_view_functions_; }
  /// Lets go of all fakes; what was recorded stays.
  void drop_fakes();
  /// Whether the program itself is running now, rather than a backward behind it.
  bool runs_program() const { return !differentiating_; }
  /// At each node of the program.
  const std::vector<AutogradOfCall>& modes() const { return modes_; }
  /// In the order in which they happened.
  const std::vector<AutogradEvent>& autograd_events() const { return autograd_events_; }

  /// Arguments, then captures, in the order in which they were met.
  const std::vector<TracedInput>& inputs() const { return inputs_; }
  const Graph& graph() const { return graph_; }
  /// Forgets the nodes and inputs after the first ones, and the tangents.
  void truncate(size_t nodes, size_t inputs);
  /// Knows nodes again that were recorded and forgotten, and the tangents that they read.
  void resume(const std::vector<Node>& nodes, const std::vector<Value>& tangents);

  /// How many nodes the program had recorded when autograd made the node of this sequence number: tells which
  /// operator it belongs to.
  size_t recorded_before(uint64_t sequence_number) const;
  /// The call of the program's that this node of autograd belongs to; null for nodes that were made while a
  /// derivative was recorded.
  const Node* call_of(const torch::autograd::Node& node) const;
  /// The node of autograd's with this sequence number saves a tensor of the program's.
  void note_saving(uint64_t sequence_number) { saving_.insert(sequence_number); }
  bool has_saved(const torch::autograd::Node& node) const { return saving_.count(node.sequence_nr()) > 0; }
  /// Whether hooks on saved tensors were set while the program recorded something: code that a backward would
  /// run.
  bool met_saved_tensor_hooks() const { return met_saved_tensor_hooks_; }
  /// Whether some of them were the host language's: what they do is seen when a backward is recorded.
  bool met_hosts_hooks() const { return met_hosts_hooks_; }
  /// A backward calls a part of the program again.
  void note_called_again() { met_saved_tensor_hooks_ = met_hosts_hooks_ = true; }
  /// Whether autograd saved something by hooks that are no checkpoint's.
  void note_unknown_hooks() { met_unknown_hooks_ = true; }
  bool met_unknown_hooks() const { return met_unknown_hooks_; }
  /// The program's nodes from `first` on are those of a checkpoint that has ended.
  void note_checkpoint(size_t first) { checkpoints_.push_back({first, graph_.nodes().size()}); }
  /// Between which nodes each checkpoint of the program lies.
  const std::vector<std::pair<size_t, size_t>>& checkpoints() const { return checkpoints_; }
  /// Asked before each draw of random numbers whether a generator was set by the program.
  void ask_for_seeds(SeedWatch* seeds) { seeds_ = seeds; }
  DrawLog& draws() { return draws_; }
  /// A backward runs code that is not libtorch's: real tensors may turn up there.
  void note_own_code() { met_own_code_ = true; }
  bool met_own_code() const { return met_own_code_; }
  /// The program took a gradient itself.
  void note_inner_gradient() { met_inner_gradient_ = true; }
  bool met_inner_gradient() const { return met_inner_gradient_; }
  /// Code of the program's in backwards runs while what `enter` returns is held.
  void run_backwards_within(std::function<std::shared_ptr<void>()> enter) {
    around_backwards_ = std::move(enter);
  }
  /// Whether autograd's zeros without memory came up: a derivative reads less where it meets them.
  bool met_zeros() const { return met_zeros_; }
  /// The program holds numbers of the graph: where they stand for tensors, the host knows which.
  void note_symbols() { met_symbols_ = true; }
  /// Some formula goes several ways: those that a derivative of it calls may.
  void note_branches() { met_branches_ = true; }

  /// The tracer that this thread is recording with, or null.
  TANDEM_FOR_PYTHON static Tracer* current();

  // For the dispatcher's fallbacks.
  void record_call(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  /// Real tensors among the arguments become their fakes; returns those that are no part of a list.
  std::vector<Lifted> lift_arguments(size_t count, torch::jit::Stack& stack);
  /// Such a call is not compiled, but its fakes are what the real tensors would be, so that the record may be
  /// run: where the program runs now recording goes on, and `refusal` says why. Throws RunEagerly elsewhere.
  void refuse_in_the_end(const std::string& reason);
  const std::string& refusal() const { return refusal_; }
  /// `detach_` is recorded by no operator below autograd.
  void note_detaching(const at::Tensor& fake);

 private:
  friend class Recording;
  friend class RecordedCall;

  Tensors gradients(Phase phase, const Tensors& outputs, const Tensors& inputs, const Tensors& tangents);
  at::Tensor wrap(at::Tensor meta, c10::Device device);
  Value add_value(const at::Tensor& meta, c10::Device device);
  int32_t storage_id(const c10::Storage& meta_storage);
  const TracedInput* original_of(const at::Tensor& saved) const;
  TracedInput make_twin(const at::Tensor& real, bool captured);
  TracedInput& add_twin(const at::Tensor& real, bool captured);
  c10::Storage twin_storage(const at::Tensor& real);
  void note_autograd(uint64_t grads, c10::ArrayRef<at::Tensor> made);
  void note_known();
  Value add_state(c10::Device device);
  void adopt_written_memory(FakeImpl& fake);
  void index_twins();

  Graph graph_;
  Phase phase_ = Phase::Forward;
  /// the program has ended, and a backward is recorded
  bool differentiating_ = false;
  const uint64_t id_;
  const bool record_locations_;
  /// meta storages, kept so that their addresses stay theirs
  std::vector<c10::Storage> storages_;
  std::unordered_map<const c10::StorageImpl*, int32_t> storage_ids_;
  std::vector<TracedInput> inputs_;
  std::unordered_map<const c10::TensorImpl*, size_t> twins_;
  std::unordered_multimap<const void*, size_t> by_memory_;  ///< inputs by where their storage begins
  std::unordered_map<const c10::TensorImpl*, at::Tensor> stand_ins_;
  struct Gathered {
    at::Tensor leaf, gradient;
  };
  std::vector<Gathered> gathered_;  ///< before the program ran
  std::unordered_map<const c10::TensorImpl*, size_t> gathered_places_;
  WeakFakes made_;  ///< all fakes of the program's run
  std::vector<AutogradOfCall> modes_;
  std::vector<AutogradEvent> autograd_events_;
  /// by the program's last node; autograd comes to know them only when that has been recorded
  WeakFakes just_made_;
  /// for each node of the program, autograd's next sequence number when it was recorded
  std::vector<uint64_t> autograd_clock_;
  std::unordered_set<uint64_t> saving_;
  std::string refusal_;
  SeedWatch* seeds_ = nullptr;
  DrawLog draws_;
  std::function<std::shared_ptr<void>()> around_backwards_;
  bool met_saved_tensor_hooks_ = false;
  bool met_hosts_hooks_ = false;
  bool met_unknown_hooks_ = false;
  std::vector<std::pair<size_t, size_t>> checkpoints_;
  bool met_own_code_ = false;
  bool met_inner_gradient_ = false;
  bool met_view_functions_ = false;
  bool met_branches_ = false;
  bool met_symbols_ = false;
  bool met_zeros_ = false;  ///< some fake is a zero tensor
  /// storages of inputs with a gradient that lie on a leaf which is a view of a tensor without
  std::vector<int32_t> leaf_views_;
  /// data of captures whose memory may die before the trace ends
  std::unordered_map<int32_t, at::Tensor> snapshots_;
};

}  // namespace tandem
