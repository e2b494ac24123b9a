#include "runtime/bases.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/variable.h>

#include "base/autograd.h"
#include "graph/geometry.h"

namespace tandem {
namespace {

using torch::autograd::CreationMeta;

at::Tensor root_of(const at::Tensor& tensor) {
  return tensor.is_view() ? at::Tensor(tensor._base()) : tensor;
}

bool is_plain_view(const at::Tensor& tensor, const at::Tensor& base) {
  return tensor.is_same(base) ||
         (tensor.is_view() && at::Tensor(tensor._base()).is_same(base) &&
          torch::autograd::impl::get_view_autograd_meta(tensor)->get_creation_meta() ==
              CreationMeta::DEFAULT);
}

/// The tensor that autograd knows all of them to be views of.
std::optional<at::Tensor> common_root(at::ArrayRef<at::Tensor> members) {
  at::Tensor root = root_of(members[0]);
  for (const at::Tensor& member : members)
    if (!is_plain_view(member, root)) return std::nullopt;
  return root.is_non_overlapping_and_dense() && !uncompiled_kind(root) ? std::optional(root) : std::nullopt;
}

/// A tensor over the plain memory that they lie in; its version is theirs.
at::Tensor memory_of(const Group& group, const at::Tensor& member) {
  at::NoGradGuard no_grad;
  at::Tensor memory = at::empty({0}, member.options().requires_grad(false));
  memory.set_(member.storage(), group.begin, {group.length}, {1});
  torch::autograd::impl::set_version_counter(memory, torch::autograd::impl::version_counter(member));
  return memory;
}

bool has_memory_for(const Group& group, const at::Tensor& member) {
  return member.storage().nbytes() >= size_t(group.begin + group.length) * member.itemsize();
}

bool lie_in_plain_memory(at::ArrayRef<at::Tensor> members) {
  return std::all_of(members.begin(), members.end(), [&](const at::Tensor& member) {
    return !member.requires_grad() && !member.is_inference() &&
           member.storage().is_alias_of(members[0].storage()) && have_one_version(member, members[0]);
  });
}

void span_memory(Group& group, at::ArrayRef<at::Tensor> members) {
  int64_t begin = members[0].storage_offset(), end = begin;
  for (const at::Tensor& member : members) {
    begin = std::min(begin, member.storage_offset());
    end = std::max(end, byte_range(placement_of(member)).second / int64_t(member.itemsize()));
  }
  group.begin = begin;
  group.length = end - begin;
}

Group make_group(at::ArrayRef<at::Tensor> members) {
  Group group;
  for (const at::Tensor& member : members) {
    if (member.dtype() != members[0].dtype() || member.is_conj() || member.is_neg())
      throw RunEagerly("tensors that share memory which the function writes differ in dtype");
    // libtorch's derivative of as_strided is a constant there.
    if (member.numel() == 0 && member.requires_grad())
      throw RunEagerly("an empty tensor shares memory that the function writes, and requires grad");
    group.members.push_back(
        {0, {}, "", Dims(member.sizes()), Dims(member.strides()), member.storage_offset(), false});
  }
  if (auto root = common_root(members);
      root && root->dtype() == members[0].dtype() && !root->is_conj() && !root->is_neg()) {
    group.known_to_autograd = true;
    for (size_t m = 0; m < members.size(); ++m) group.members[m].is_base = members[m].is_same(*root);
  } else if (lie_in_plain_memory(members)) {
    span_memory(group, members);
  } else {
    throw RunEagerly("tensors share memory that the function writes, in a way that autograd does not know");
  }
  return group;
}

Tensors reals_of(const std::vector<TracedInput>& inputs, const std::vector<size_t>& which) {
  Tensors reals;
  for (size_t i : which) reals.push_back(inputs[i].real);
  return reals;
}

/// The base is larger than the members that overlap, and others may lie on it.
std::vector<size_t> with_all_on_its_base(const std::vector<TracedInput>& inputs,
                                         std::vector<size_t> members) {
  for (bool grown = true; grown;) {
    grown = false;
    const Tensors reals = reals_of(inputs, members);
    const Group group = make_group(reals);
    const at::Tensor base = group.known_to_autograd ? root_of(reals[0]) : memory_of(group, reals[0]);
    for (size_t i = 0; i < inputs.size() && !grown; ++i) {
      if (std::find(members.begin(), members.end(), i) != members.end() ||
          !inputs[i].real.storage().is_alias_of(base.storage()))
        continue;
      if (surely_strangers(placement_of(base), placement_of(inputs[i].real))) continue;
      members.insert(std::lower_bound(members.begin(), members.end(), i), i);
      grown = true;
    }
  }
  return members;
}

}  // namespace

SharedBases::SharedBases(const std::vector<TracedInput>& inputs,
                         const std::vector<std::vector<size_t>>& groups,
                         const std::vector<size_t>& input_of_argument,
                         const std::vector<std::string>& names) {
  std::vector<bool> merged(inputs.size());
  for (const std::vector<size_t>& overlapping : groups) {
    if (merged[overlapping[0]]) continue;
    const std::vector<size_t> all = with_all_on_its_base(inputs, overlapping);
    Group& group = groups_.emplace_back(make_group(reals_of(inputs, all)));
    for (size_t m = 0; m < all.size(); ++m) {
      merged[all[m]] = true;
      group.members[m].input = all[m];
      group.members[m].name = names[all[m]];
      for (size_t a = 0; a < input_of_argument.size(); ++a)
        if (input_of_argument[a] == all[m]) group.members[m].arguments.push_back(a);
    }
  }
}

Tensors SharedBases::members(const Tensors& arguments, const Tensors& captured) const {
  Tensors members;
  size_t next = 0;
  for (const Group& group : groups_)
    for (const Member& member : group.members)
      members.push_back(member.arguments.empty() ? captured[next++] : arguments[member.arguments[0]]);
  return members;
}

std::optional<Tensors> SharedBases::bases(const Tensors& members) const {
  Tensors bases;
  at::ArrayRef<at::Tensor> left(members);
  for (const Group& group : groups_) {
    at::ArrayRef<at::Tensor> these = left.slice(0, group.members.size());
    left = left.slice(group.members.size());
    if (std::any_of(these.begin(), these.end(),
                    [](const at::Tensor& t) { return !t.defined() || uncompiled_kind(t); }))
      return std::nullopt;
    auto root = group.known_to_autograd ? common_root(these) : std::nullopt;
    if (group.known_to_autograd ? !root : !lie_in_plain_memory(these) || !has_memory_for(group, these[0]))
      return std::nullopt;
    for (size_t m = 0; m < these.size(); ++m)
      if (root && these[m].is_same(*root) != group.members[m].is_base) return std::nullopt;
    bases.push_back(root ? *root : memory_of(group, these[0]));
  }
  return bases;
}

Tensors SharedBases::arguments(const Tensors& bases, const Tensors& arguments) const {
  Tensors given = bases;
  given.insert(given.end(), arguments.begin(), arguments.end());
  for (const Group& group : groups_)
    for (const Member& member : group.members)
      for (size_t a : member.arguments) given[bases.size() + a] = at::Tensor();
  return given;
}

std::vector<std::string> SharedBases::argument_names(const std::vector<std::string>& names,
                                                     size_t arguments) const {
  std::vector<std::string> given;
  for (const Group& group : groups_) {
    std::string all;
    for (const Member& member : group.members) all += (all.empty() ? "" : " and ") + member.name;
    given.push_back("memory of " + all);
  }
  for (size_t a = 0; a < arguments; ++a)
    given.push_back(a < names.size() ? names[a] : "argument " + std::to_string(a));
  return given;
}

detail::Program SharedBases::program(const detail::Program& original, const Tensors& members,
                                     std::vector<TracedMember>& seen) const {
  return [this, &original, &members, &seen](const Tensors& given) {
    Tracer& tracer = *Tracer::current();
    Tensors arguments(given.begin() + int64_t(groups_.size()), given.end());
    seen.clear();
    size_t next = 0;
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const Member& member : groups_[g].members) {
        const at::Tensor& real = members[next++];
        at::Tensor fake = given[g];
        if (!member.is_base) {
          at::AutoGradMode as_it_was_made(true);
          fake = given[g].as_strided(member.sizes, member.strides, member.offset);
          seen.push_back(
              {fake, tracer.value_of(fake), member.name, member.arguments.empty(), real.requires_grad(), g});
        }
        for (size_t a : member.arguments) arguments[a] = fake;
        if (member.arguments.empty()) tracer.stand_for(real, fake);
      }
    return original(arguments);
  };
}

Tensors SharedBases::views(const Tensors& members) const {
  Tensors views;
  size_t next = 0;
  for (const Group& group : groups_)
    for (const Member& member : group.members) {
      const at::Tensor& tensor = members[next++];
      if (!member.is_base) views.push_back(tensor);
    }
  return views;
}

}  // namespace tandem
