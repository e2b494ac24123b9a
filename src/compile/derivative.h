/// One order of differentiation of a compiled function: the code that computes it, what that saves, and the
/// backwards that read it.
#pragma once

#include <tandem/compiled.h>

#include "aot/joint.h"
#include "cache/record.h"
#include "compile/by_variant.h"
#include "compile/compilation.h"
#include "compile/leftovers.h"
#include "compile/part_backward.h"
#include "partition/extract.h"
#include "partition/marks.h"
#include "partition/narrow.h"

namespace tandem {

/// A backward with its code.
struct BackwardCode : BackwardRecord {
  std::shared_ptr<Executable> code;
  /// saved values that nothing can ask for once this backward was the last through its nodes
  std::vector<size_t> given_up;
};

/// Whether some operator's backward reads other saved values when it is differentiated in turn, or reads them
/// only for some of its outputs.
bool has_fickle_backward(const Graph& graph);

/// Which output of a graph is the gradient of each input; only wanted ones have one.
std::vector<int64_t> positions(const std::vector<bool>& wanted, const Graph& graph);

/// An order of differentiation that can be run, and grows as backwards and orders above it are asked for.
class Derivative {
 public:
  using Artifacts = cache::Artifacts;

  /// The first order, not split yet.
  explicit Derivative(Compilation& compilation);
  /// The order above `below`, for these tangents and wanted gradients; throws what eager's backward would
  /// throw under create_graph.
  Derivative(const Derivative& below, const BackwardVariant& variant);

  /// An order as it was stored, the first, or one above `below`; throws Error when its code cannot be loaded.
  /// Backwards that are packed are looked at when the first of them is asked for.
  Derivative(Compilation& compilation, cache::StoredOrder stored, std::shared_ptr<const Artifacts> artifacts);
  Derivative(const Derivative& below, cache::StoredOrder stored, std::shared_ptr<const Artifacts> artifacts);

  /// What is to be stored of it, with the code that it names; nothing when some code has no bytes.
  std::optional<cache::StoredOrder> stored(Artifacts& artifacts) const;

  /// Splits the recorded joint graph and compiles its forward. With `error` there is no backward, and asking
  /// for one throws it.
  void split(Joint joint, std::exception_ptr error);

  /// The backward for these tangents and gradients, compiled when first asked for; throws what eager's
  /// backward would throw.
  std::shared_ptr<const BackwardCode> backward(const BackwardVariant& variant);
  /// What is expected, compiled: the backwards of all parts in one graph.
  Graph expected_backward();
  /// What the forward calls, and the backward that is expected where there is one, which is compiled for it.
  std::vector<KernelInfo> expected_kernels();
  /// The same backward with a derivative of its own, which needs this one to be there.
  std::shared_ptr<Derivative> next(const BackwardVariant& variant);

  /// From the program's inputs on.
  const Joint& joint() const;
  const OrderRecord& record() const { return record_; }
  size_t saved_count() const { return record_.halves.saved.size(); }
  /// Each is one node of a call.
  const std::vector<OrderPart>& parts() const { return parts_; }
  /// Whether gradients go to a leaf of this order at all.
  bool leads_to(size_t leaf) const {
    return !record_.has_expected || record_.halves.backward.empty() ||
           record_.halves.backward.outputs()[leaf];
  }
  /// The saved values that backwards of a part may read.
  const std::vector<size_t>& held_by(size_t part) const { return held_[part]; }
  bool is_first() const { return number_ == 1; }
  /// For ByVariant.
  const BackwardVariant& variant() const { return record_.variant; }

  std::shared_ptr<Executable> forward;

  /// Saved values that live in the memory of a graph input or of a result, and so share its version.
  struct SharedVersion {
    size_t saved, owner;
    bool of_input;
  };
  std::vector<SharedVersion> shared_versions;

  /// What these backwards of a part, the last ones through their nodes, leave of `saved` to none of its own.
  std::vector<size_t> given_up(const std::vector<Between>& done, const std::vector<size_t>& saved,
                               size_t part) const;
  /// Whether eager refuses another one behind them.
  bool refuse(const std::vector<Between>& done, const Between& next) const {
    return leftovers_ && leftovers_->refuse(done, next);
  }

 private:
  Joint with_passes(Joint joint, const Joint* below, Marks* marks = nullptr) const;
  /// Which narrow forms its joint graphs have, where the partitioner can choose them.
  std::optional<Narrowing> narrowing() const;
  /// Backend::fuses of whoever compiles the backward.
  std::function<bool(const Graph&, const Node&)> fuses() const;
  Kept kept(size_t part) const;
  /// Primals of the first order that the program returns too.
  std::vector<Value> given_back(const Joint& joint) const;
  void partition(const Joint& joint, std::vector<Value> must_save);
  std::vector<Value> missing_for_next_order() const;
  void add_missing(BackwardVariant asked, size_t part, std::vector<Value>& missing) const;
  void find_held();
  void refuse_states() const;
  void find_shared_versions();
  void find_leftovers();
  PartBackward expected_backward(size_t part) const;
  BackwardCode compile_backward(const BackwardVariant& variant);
  void compile_other_parts(const BackwardVariant& asked);
  void say_that_one_went(const char* what, size_t most) const;
  CodePlace forward_place() const;
  CodePlace backward_place(const std::vector<size_t>& saved, size_t variant) const;

  /// Backwards as they were stored, with the artifacts that they name.
  struct Closed {
    cache::PackedBackwards packed;
    std::shared_ptr<const Artifacts> artifacts;
  };

  void restore(cache::StoredOrder stored, std::shared_ptr<const Artifacts> artifacts);
  void add_stored(std::vector<cache::StoredBackward> backwards, std::vector<cache::StoredOrder> above,
                  const std::shared_ptr<const Artifacts>& artifacts);
  /// Makes what was stored of the backwards ready to be asked for; to be called with the lock held.
  void open();
  /// This order recorded and split once more, for what of the stored one is no good; throws Error where that
  /// gives another forward.
  std::unique_ptr<Derivative> made_again() const;
  /// The next order of this backward; throws UnsupportedError where it cannot be compiled.
  std::unique_ptr<Derivative> above(const BackwardVariant& variant) const;
  bool has_backward() const { return closed_ || !record_.halves.backward.empty(); }
  /// Of a stored order above the first it is recorded when something asks for it.
  const Order& order() const;

  Compilation& compilation_;
  const Derivative* below_ = nullptr;   ///< none of the first order
  const size_t number_;                 ///< 1 for the first order
  mutable std::optional<Order> order_;  ///< of orders above the first
  std::vector<OrderPart> parts_;
  std::vector<std::vector<size_t>> held_;  ///< of each part
  OrderRecord record_;
  std::exception_ptr error_;
  Marks marks_;
  mutable Joint joint_;  ///< empty while it is packed
  mutable cache::PackedJoint packed_;
  std::optional<Closed> closed_;  ///< of a stored first order, until a backward is asked for
  /// of the first order, where it has a backward that is not closed
  std::optional<Leftovers> leftovers_;
  ByVariant<BackwardCode> backwards_{std::max(most_backwards, 2 * parts_.size())};
  ByVariant<Derivative> above_{most_orders_above};
};

}  // namespace tandem
