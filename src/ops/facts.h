/// One table of facts about operators, read by every stage: a new operator is a new row.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>
#include <vector>

#include "base/for_python.h"

namespace tandem {

enum class Kind : uint8_t {
  Other,          ///< nothing special is known
  Pointwise,      ///< each result element depends on the elements at the same place
  Reduction,      ///< each result element folds elements of an argument: there are fewer of them
  Normalization,  ///< folds, and maps each element by what it found: softmax, layer norm
  View,           ///< results are views of the first tensor argument
  Matmul,         ///< matrix products, convolutions, attention: worth a library call
  Random,         ///< draws from a generator
  Factory,        ///< makes a tensor from sizes and numbers alone
};

/// What a pass may want to know of an operator. Everything that the schema and its tags say is filled in from
/// there.
struct OpFacts {
  Kind kind = Kind::Other;
  int cost = 1;                    ///< FactRow::cost
  std::vector<int> hidden_writes;  ///< arguments written although the schema does not say so
  std::vector<int> written;        ///< arguments written, hidden ones included
  bool counts_writes = true;       ///< libtorch counts a version of what it writes
  bool random = false;             ///< draws from a generator
  bool data_dependent = false;     ///< result sizes or values cannot be known ahead
  /// writes sizes, strides or storage of its first argument (t_, set_, resize_)
  bool changes_metadata = false;
  bool view = false;         ///< some result is a view of an argument
  bool unset = false;        ///< its results hold whatever their memory held before
  bool side_effect = false;  ///< must run, in order, even when nothing reads its results
  /// a backend may compute it in loops of its own, as its kind says
  bool fusible = false;
  /// A CUDA graph cannot hold it: the host reads values on the way. The same is true of any operator that is
  /// given masks as indices, or tensors on two devices.
  bool unrecordable = false;
  /// Its backward reads other saved values when it is differentiated in turn, or for some of its outputs
  /// only.
  bool fickle_backward = false;
  bool mixes_devices = false;    ///< takes tensors on several devices: copies, indices on the CPU
  bool replaces_memory = false;  ///< gives its first argument other memory, or resizes it
  bool identity = false;         ///< gives its first argument back, as another tensor
  /// counts places from where a storage begins, not from its argument
  bool counts_from_storage = false;
  /// a view of the sizes in its second argument, for some strides alone
  bool sets_sizes = false;
  bool moves_dimensions = false;  ///< a view of all elements, whatever the strides
  /// gives less where grad mode is off, so that a backward cannot run it again
  bool minds_grad_mode = false;
};

/// The facts of an operator, looked up once and kept; the reference stays valid.
const OpFacts& facts(const c10::OperatorHandle& op);

/// Whether an operator is a mark for libtorch's profiler, which computes nothing: it is neither recorded nor
/// watched.
bool is_mark(const c10::OperatorHandle& op);

/// The operators that were declared with register_side_effect, sorted.
std::vector<std::string> declared_side_effects();

/// `aten::add.Tensor`, or `aten::add` for an overload without a name.
TANDEM_FOR_PYTHON std::string full_name(const c10::OperatorHandle& op);

}  // namespace tandem
