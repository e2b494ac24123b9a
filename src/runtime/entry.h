/// One signature of a compiled function: its traced graph, its compiled halves, and how a call is wrapped
/// around them.
#pragma once

#include <tandem/compiled.h>

#include <atomic>

#include "cache/session.h"
#include "compile/captures.h"
#include "compile/derivative.h"
#include "key/named_code.h"
#include "runtime/bases.h"
#include "runtime/signature.h"

namespace tandem {

struct RunningCall;

/// One concern of a call around the compiled code; what a call needs is a list of these.
class Wrapper {
 public:
  virtual ~Wrapper() = default;
  virtual const char* name() const = 0;
  /// Runs behind the compiled forward.
  virtual void after(RunningCall& call) const = 0;
};

/// What compiling a program for one signature needs to know.
struct CompileRequest {
  const detail::Program& program;
  const Options& options;
  const std::vector<std::string>& argument_names;
  const detail::Namer& name_capture;
  const Watched& watched;
  const Tensors& leaves;               ///< that calls before this one reached
  size_t function = 0, signature = 0;  ///< their numbers
  bool only_key = false;               ///< the entry is not called: it is made for its fingerprint
  bool runs = false;                   ///< a call waits for results
  bool is_second_chance = false;       ///< what the program keeps of this trace, it keeps of every one
  /// of such a trace: looks for the lines that it comes from, which takes time
  bool says_where = false;
};

class Entry {
 public:
  /// Traces, plans, partitions and compiles the forward; the backward waits until it is needed.
  Entry(const CompileRequest& request, const Tensors& arguments);

  Signature signature;
  /// What a call with these arguments reaches besides them: captured tensors, and bases of inputs that share
  /// memory. Captures are held weakly, so that one which the program replaced dies; nothing when one did, or
  /// when the arguments have no such bases.
  std::optional<Tensors> reach(const Tensors& arguments) const;
  bool captures_are_alive() const;
  std::vector<std::string> names;   ///< of arguments, then what they reach
  std::string eager_reason;         ///< set: calls run the program as it is
  bool gets_second_chance = false;  ///< for a reason that may be gone at the next call
  /// what the call returns that this was made for, where the record was run for it
  std::optional<detail::Returned> replayed;
  /// for the reason that the program itself reads values or makes sizes of them
  bool looks_at_data = false;

  const Plan& plan() const { return compilation_.plan; }
  const Pieces& pieces() const { return compilation_.pieces; }
  /// What tangents of the first order belong to, as fakes.
  const Tensors& sources() const { return compilation_.first.sources; }
  std::shared_ptr<Executable> forward;
  std::vector<std::unique_ptr<Wrapper>> wrappers;
  std::shared_ptr<const void> structure;
  bool changes_metadata = false;  ///< of some input
  bool trains = false;            ///< outputs get a gradient through the compiled node

  size_t saved_count = 0;

  /// One tensor per input of the contract.
  Tensors gather_inputs(const Tensors& arguments, Tensors reached) const;
  /// Whether the forward saves something that lies in the memory of this input.
  bool saves_memory_of(size_t input) const;
  size_t graph_inputs() const { return plan().roles.inputs.size() - compilation_.traced.members.size(); }

  /// The program and its first gradient; others lie above it.
  Derivative& first_derivative() { return *first_; }

  const Fingerprint& fingerprint() const { return remembered_.fingerprint(); }
  Explanation explain();

  /// Counts a call; says whether it is one that checks the promise.
  bool is_watched_call();
  size_t calls() const { return calls_; }
  /// Whether what the program does to real tensors can be compared with the record, operator by operator, and
  /// gives the bits that compiled code gives.
  bool can_be_followed(const Tensors& inputs) const;
  /// A copy of what was recorded of the program, and the values that it returned.
  Graph record();
  std::vector<Value> recorded_outputs() const;
  /// What is another now when the program is traced again; empty when it is the same.
  std::string difference_from(const detail::Program& program, const Tensors& arguments,
                              const Tensors& leaves = {});
  /// From now on calls run the program as it is.
  void give_up(const std::string& reason);
  /// Why they do; empty when they do not.
  const std::string& reason_to_run_as_it_is() const {
    return is_broken_.load(std::memory_order_acquire) ? broken_promise_ : eager_reason;
  }
  /// What its graphs and fakes take, by the number of operators: some 5 kB each, measured on models.
  size_t approximate_bytes() const { return nodes_recorded_ * 5000; }
  /// Captured tensors in which gradients gather.
  void add_leaves(Tensors& to) const;

 private:
  void compile_for(const CompileRequest& request, const Tensors& arguments);
  void merge_overlapping(const OverlappingWrites& overlap);
  void trace_and_plan(const CompileRequest& request, const Tensors& arguments);
  void hand_over_kept(const CompileRequest& request);
  Traced trace_again(const detail::Program& program, const Tensors& arguments, const Tensors& leaves) const;
  void plan_traced(const CompileRequest& request, const Tensors& arguments);
  void read_inputs(const Tensors& arguments);
  void name_inputs(const CompileRequest& request);
  void mark_static_arguments();
  std::optional<JointGraph> differentiate();
  void differentiate_and_compile(std::optional<JointGraph> joint);
  void split_and_compile(JointGraph joint);
  void note_halves();
  int64_t saved_bytes() const;

  /// Finds its key; returns forward and backward where they had to be recorded for that.
  std::optional<JointGraph> identify();
  /// Whether the cache had it.
  bool look_up();
  /// Takes what was found; throws Error when it does not fit the call.
  void restore(cache::Found& found);
  std::string misfit(const cache::StoredEntry& entry) const;
  /// Tells the cache what there is by now, once it can be called and differentiated; held by whoever
  /// compiles.
  void remember();
  void describe(cache::StoredEntry& entry) const;

  void tell_compiled(double seconds) const;
  void tell_backward(const char* what, size_t order, double seconds) const;
  std::vector<Capture> captures_of_trace() const;

  Compilation compilation_;
  const size_t function_;
  std::vector<Capture> captured_members_;  ///< those of `bases_`
  std::optional<SharedBases> bases_;
  std::vector<TracedMember> members_;  ///< while the program is traced
  /// which graph input each argument of the graph is; size_t(-1) for undefined ones
  std::vector<size_t> input_of_argument_;
  std::vector<std::string> input_names_;
  bool reads_offsets_ = false;
  Remembered remembered_;
  std::exception_ptr backward_error_;
  std::unique_ptr<Derivative> first_;
  size_t nodes_recorded_ = 0;
  std::atomic<size_t> calls_ = 0;
  std::atomic<bool> is_broken_ = false;
  std::string broken_promise_;
  int64_t eager_saved_bytes_ = 0;
};

}  // namespace tandem
