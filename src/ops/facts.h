/// One table of facts about operators, read by every stage: a new operator is a new row.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>
#include <vector>

namespace tandem {

enum class Kind : uint8_t {
  Other,      ///< nothing special is known
  Pointwise,  ///< each result element depends on the elements at the same place
  Reduction,
  View,       ///< results are views of the first tensor argument
  Matmul,     ///< matrix products, convolutions, attention: worth a library call
  Random,     ///< draws from a generator
  Factory,    ///< makes a tensor from sizes and numbers alone
};

/// What a pass may want to know of an operator. Everything that the schema and its tags say is filled in from there.
struct OpFacts {
  Kind kind = Kind::Other;
  int cost = 1;                             ///< work per result element, an add being 1
  std::vector<int> hidden_writes;           ///< arguments written although the schema does not say so
  std::vector<int> written;                 ///< arguments written, hidden ones included
  bool counts_writes = true;                ///< libtorch counts a version of what it writes
  bool random = false;                      ///< draws from a generator
  bool data_dependent = false;              ///< result sizes or values cannot be known ahead
  bool changes_metadata = false;            ///< writes sizes, strides or storage of its first argument (t_, set_, resize_)
  bool view = false;                        ///< some result is a view of an argument
  bool unset = false;                       ///< its results hold whatever their memory held before
  bool side_effect = false;                 ///< must run, in order, even when nothing reads its results
};

/// The facts of an operator, looked up once and kept; the reference stays valid.
const OpFacts& facts(const c10::OperatorHandle& op);

/// Whether an operator is a mark for libtorch's profiler, which computes nothing: it is neither recorded nor watched.
bool is_mark(const c10::OperatorHandle& op);

/// The operators that were declared with register_side_effect, sorted.
std::vector<std::string> declared_side_effects();

/// `aten::add.Tensor`, or `aten::add` for an overload without a name.
std::string full_name(const c10::OperatorHandle& op);

}  // namespace tandem
