/// One run of `functionalize`: what each recorded value and each memory holds while the trace is gone
/// through.
#pragma once

#include <unordered_set>

#include "aot/functionalize.h"
#include "aot/views.h"

namespace tandem {

/// Reading is in functionalize.cpp, writing in functionalize_writes.cpp.
class Functionalizer {
 public:
  explicit Functionalizer(const FunctionalRequest& request);
  FunctionalGraph run();

 private:
  /// What one storage holds now.
  struct Memory {
    Value base;  ///< the first value on it: its geometry is the one that `content` keeps
    Value content;
    uint32_t version = 0;
    bool of_input = false;
    const Node* writer = nullptr;  ///< the last one
  };

  Memory& memory(Value value) { return memory_[trace_.meta(value).storage]; }
  void begin_storage(Value value);

  // ---- reading

  /// The value that reading `value` gives now.
  Value read(Value value);
  Value rebuild(Value value, const Memory& m);

  /// Whether a view lies between the first and the last element of its base.
  static bool within(const TensorMeta& base, const TensorMeta& view);

  static bool read_only(const Node& node) {
    return node.writes.empty() || functional_twin(node.op).has_value();
  }
  Value replay_view(Value value, const ViewLink& link);

  /// A view of `content` with the geometry of `meta`, `offset` elements after where `content` begins.
  Value strided(Value content, const TensorMeta& meta, int64_t offset);

  /// Where an input begins in its storage differs from call to call, so nothing with an absolute offset may
  /// be made of it.
  Value away_from_inputs(Value value);

  // ---- writing
  void rewrite(const Node& node);
  void copy_node(const Node& node);
  void define(Value made);

  /// `x.t_()` gives x the geometry of `x.t()`.
  void rewrite_metadata_write(const Node& node);
  static bool is_product(const c10::OperatorHandle& op);
  void rewrite_data_write(const Node& node);
  bool rewrite_copy(const Node& node);
  bool rewrite_as_twin(const Node& node);

  /// Kernels such as matrix products round differently for another layout of the result, and some refuse a
  /// dtype only where they write in place.
  bool computes_in_another_layout(const std::vector<Value>& results, const Node& node) const;

  /// The operator itself, on copies that nothing else reads.
  void rewrite_on_clones(const Node& node);

  /// A fresh tensor that nothing has read yet, nor does the operator that writes it, may be written as it is.
  Value writable(Value value, const Node& writer, Value target);

  /// `made` with the dtype and strides that the program sees after writing `target`.
  Value fit(Value made, Value target, Value old);

  /// From now on the memory of `target` holds `made` where `target` lies.
  void commit(Value target, Value made);
  void copy_back(Value input);

  /// An output must not be memory that an input or another output owns.
  Value private_copy(Value value);

  // ---- emitting
  Value call(const char* name, std::vector<Operand> arguments);
  void emit(Node node);
  bool memory_of_input(Value value) const;

  static c10::IValue dims(const Dims& sizes) {
    return c10::IValue(std::vector<int64_t>(sizes.begin(), sizes.end()));
  }

  const FunctionalRequest& request_;
  const Graph& trace_;
  const std::vector<ViewLink> links_;
  std::vector<Value> current_;   ///< of each recorded value: what holds it now
  std::vector<uint32_t> stamp_;  ///< and for which version of its memory that is true
  std::vector<Memory> memory_;
  Graph graph_;
  Phase phase_ = Phase::Forward;
  const Node* rewritten_ = nullptr;
  bool reads_offsets_ = false;
  std::unordered_set<int32_t> factory_results_;
  std::unordered_set<int32_t> output_storages_;
};

}  // namespace tandem
