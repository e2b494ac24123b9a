// Gradients between the outputs of a call, and those that hooks on outputs see.
#include "fuzz/meeting.h"
#include "fuzz/run.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

namespace tandem::fuzz {

/// Outputs that the program computed. Those on memory of given tensors are the caller's own views of these.
Tensors Run::computed_outputs() const {
  Tensors computed;
  auto is_in = [](const Tensors& tensors, const auto& fits) {
    return std::any_of(tensors.begin(), tensors.end(), fits);
  };
  for (const at::Tensor& t : with_gradient(outputs_)) {
    const bool is_view = is_in(scene_.pool, [&](const at::Tensor& given) {
      return !given.is_same(t) && given.storage().is_alias_of(t.storage());
    });
    const bool is_there = is_in(computed, [&](const at::Tensor& other) { return other.is_same(t); });
    if (!t.is_leaf() && at::isFloatingType(t.scalar_type()) && !is_view && !is_there) computed.push_back(t);
  }
  return computed;
}

/// Each output with respect to the others, and what hooks on these see while the leaves are asked for.
void Run::differentiate_between() {
  const std::string kind = "gradient between outputs";
  const Tensors visible = computed_outputs();
  if (visible.size() < 2 || subject_.sums_anew || !decide_between(kind, visible)) return;
  torch::manual_seed(call_.seed + 4);
  const Tensors tangents = tangents_of(visible);
  for (size_t of = 0; of < visible.size(); ++of) {
    Tensors others = visible;
    others.erase(others.begin() + int64_t(of));
    see_where_eager_answers(kind, of, [&] {
      return torch::autograd::grad({visible[of]}, others, {tangents[of]}, true, false, true);
    });
    if (!has_hooks_)
      see_where_eager_answers("gradient that a hook sees", of,
                              [&] { return seen_by_hooks(visible, of, tangents[of]); });
  }
}

/// Where eager refuses, compiled code must, or have no gradient at all: eager may fail in other results of
/// an operator than those that are asked for.
void Run::see_where_eager_answers(const std::string& kind, size_t of, const std::function<Tensors()>& ask) {
  const std::string turn = kind + " " + std::to_string(of);
  const auto* eagers = call_.manner != nullptr ? &call_.manner->tangents : nullptr;
  const auto decided = eagers ? eagers->find(turn) : std::map<std::string, Tangents>::const_iterator();
  const bool is_decided = eagers && decided != eagers->end();
  if (is_decided && decided->second == Tangents::None) return;
  Tensors found;
  const std::string failure = failure_of([&] { found = ask(); });
  const bool has_none =
      std::none_of(found.begin(), found.end(), [](const at::Tensor& t) { return t.defined(); });
  if (!eagers && failure.empty() && found.empty()) {
    found_.manner.tangents[turn] = Tangents::None;
    return;
  }
  if (!eagers && !failure.empty()) {
    found_.manner.tangents[turn] = Tangents::OneByOne;
    found_.manner.concessions.insert("eager fails between outputs");
  }
  const bool refuses = !failure.empty() || (is_decided && has_none);
  see(kind, of, refuses ? refused_gradients : has_gradients, failure);
  for (size_t k = 0; k < found.size() && !refuses; ++k)
    see_tensor(kind, k, found[k], between_exactness(), /*layout_matters=*/false);
}

/// Nothing where the output leads to no leaf.
Tensors Run::seen_by_hooks(const Tensors& visible, size_t of, const at::Tensor& tangent) const {
  const Tensors wanted = leaves();
  if (wanted.empty()) return {};
  Tensors seen(visible.size()), gradients;
  std::vector<unsigned> hooks;
  for (size_t k = 0; k < visible.size(); ++k)
    hooks.push_back(visible[k].register_hook([&seen, k](const at::Tensor& gradient) {
      // Eager's engine brings nothing to the other results of an operator, and ours to what other outputs
      // of a node lead to.
      if (gradient.defined()) seen[k] = gradient.clone();
    }));
  const std::string failure = failure_of(
      [&] { gradients = torch::autograd::grad({visible[of]}, wanted, {tangent}, true, false, true); });
  for (size_t k = 0; k < visible.size(); ++k) visible[k].remove_hook(hooks[k]);
  if (!failure.empty()) throw std::runtime_error(failure);
  return std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& t) { return t.defined(); })
             ? Tensors()
             : seen;
}

Exactness Run::between_exactness() const {
  return subject_.rounded ? Exactness::Rounded : Exactness::Numbers;
}

/// A write to a part of a tensor may keep the whole history in one node. An input that is a view when it is
/// written, and what shares its memory, has its history from its base; one that gets other sizes in place,
/// from the caller's side of the call.
bool Run::decide_between(const std::string& kind, const Tensors& visible) {
  has_hooks_ = false;
  if (call_.manner != nullptr) {
    has_hooks_ = call_.manner->tangents.contains("hooks");
    return !call_.manner->tangents.contains(kind);
  }
  bool parts = true;  // of views that cannot be differentiated nothing is known
  Tensors ends = visible;
  for (size_t k = 0; k < scene_.pool.size(); ++k)
    if (written_[k]) ends.push_back(scene_.pool[k]);
  (void)failure_of([&] {
    parts = writes_parts(ends);
    has_hooks_ = has_hooks(visible);
  });
  if (has_hooks_) found_.manner.tangents["hooks"] = Tangents::None;
  if (!call_.history && !writes_views() && !shares_written_memory(visible) && !parts) return true;
  found_.manner.concessions.insert("no gradients between outputs where parts or shared memory are written");
  found_.manner.tangents[kind] = Tangents::None;
  return false;
}

bool Run::shares_written_memory(const Tensors& visible) const {
  for (size_t k = 0; k < scene_.pool.size(); ++k)
    for (const at::Tensor& t : visible)
      if (written_[k] && (t.is_same(scene_.pool[k]) ? was_reshaped_in_place(t)
                                                    : t.storage().is_alias_of(scene_.pool[k].storage())))
        return true;
  return false;
}

}  // namespace tandem::fuzz
