/// Tensors without data that claim a real device: what a traced function computes with.
#pragma once

#include <c10/core/TensorImpl.h>
#include <tandem/graph.h>

namespace tandem {

/// Below autograd the operators on a fake are recorded; autograd itself treats it as any other tensor.
class FakeImpl final : public c10::TensorImpl {
 public:
  FakeImpl(at::Tensor meta, c10::Device device, Value value, uint64_t tracer);

  at::Tensor meta;        ///< same geometry on the meta device; fakes that share memory share its storage
  Value value;            ///< the name of this tensor in the recorded graph
  const uint64_t tracer;  ///< which tracer made it
  /// stands for what libtorch calls a zero tensor: zeros without memory, which nobody may write
  bool zero = false;
  /// autograd keeps the tensor itself for some node that it does not come from: by then it may have another
  /// history
  bool is_saved = false;

  /// False once it has become a real tensor.
  bool is_fake() const { return key_set_.has(c10::DispatchKey::Fake); }

  /// What the same fake is made of once more, with the same versions.
  struct Likeness {
    at::Tensor meta;
    c10::Device device;
    Value value;
    uint64_t tracer;
    c10::DispatchKeySet keys;
    c10::VariableVersion versions;  ///< disabled for inference tensors
    bool zero;

    /// Whoever looks for the fakes of a trace does not count it.
    at::Tensor make() const;
  };
  Likeness likeness() const;

  /// From now on this is the tensor `real`, or one that shares its memory, versions and history: for whoever
  /// still has it when the trace has ended.
  void become(const at::Tensor& real);

  /// Takes on the geometry of `meta` after an operator changed it in place.
  void refresh();

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                         bool allow_metadata_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                         bool allow_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& from) override;
  void release_resources() override;

  /// Memory that a program may fill through a pointer (`at::tensor(vector)` does); gone after the first use
  /// in an operator.
  void lend_memory(c10::Storage storage);
  /// Whether somebody asked for a writable pointer; reading the lent storage does not count.
  bool memory_was_written() const;
  const c10::Storage& lent_memory() const { return storage_; }
  void take_memory_back();

 private:
  template <class Version>
  c10::intrusive_ptr<FakeImpl> copy(Version&& version, bool allow_metadata_change) const;
  const char* tensorimpl_type_name() const override { return "FakeImpl"; }
};

using FakePtr = c10::intrusive_ptr<FakeImpl>;
using WeakFakes = std::vector<c10::weak_intrusive_ptr<FakeImpl>>;

/// While it lives, fakes that are copies of others are noted down on this thread.
class NotedCopies {
 public:
  explicit NotedCopies(WeakFakes& into);
  ~NotedCopies();
  NotedCopies(const NotedCopies&) = delete;

 private:
  WeakFakes* const outer_;
};

/// The fake behind a tensor, or null for a real one.
FakeImpl* as_fake(const at::Tensor& tensor);

}  // namespace tandem
