/// Inputs that overlap in memory which the function writes, or one that is a view: the graph takes the one
/// tensor that they are views of instead of them.
#pragma once

#include "aot/traced.h"

namespace tandem {

/// One of those inputs.
struct Member {
  size_t input = 0;               ///< of the trace that found them
  std::vector<size_t> arguments;  ///< where it is given; nowhere: the function captured it
  std::string name;
  Dims sizes, strides;
  int64_t offset = 0;
  bool is_base = false;
};

/// Members with one base.
struct Group {
  std::vector<Member> members;
  /// they are views of a tensor with a history of its own; else the base is a stretch of plain memory
  bool known_to_autograd = false;
  int64_t begin = 0, length = 0;  ///< of the plain memory, in elements
};

class SharedBases {
 public:
  /// `groups` name inputs of the trace that overlap, `input_of_argument` says where they were given; what
  /// else lies on a base joins its group. Throws RunEagerly where a group has no base.
  SharedBases(const std::vector<TracedInput>& inputs, const std::vector<std::vector<size_t>>& groups,
              const std::vector<size_t>& input_of_argument, const std::vector<std::string>& names);

  /// The members of a call, group by group; captured ones are taken from `captured` in turn.
  Tensors members(const Tensors& arguments, const Tensors& captured) const;
  /// Their bases, one per group; nothing where the members are views of something else than before.
  std::optional<Tensors> bases(const Tensors& members) const;
  /// What the graph is given: the bases, then the arguments that are no members.
  Tensors arguments(const Tensors& bases, const Tensors& arguments) const;
  std::vector<std::string> argument_names(const std::vector<std::string>& names, size_t arguments) const;

  /// The program as a function of those; writes down in `seen` which fakes stand for members that are not
  /// bases.
  detail::Program program(const detail::Program& original, const Tensors& members,
                          std::vector<TracedMember>& seen) const;
  /// Those of `members` that are in `seen`.
  Tensors views(const Tensors& members) const;
  const std::vector<Group>& groups() const { return groups_; }

 private:
  std::vector<Group> groups_;
};

}  // namespace tandem
