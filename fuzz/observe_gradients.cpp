// The gradients that a caller can ask for behind a call, of any order.
#include "fuzz/meeting.h"
#include "fuzz/run.h"
#include "fuzz/shaking.h"

#include "base/history.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <set>

namespace tandem::fuzz {

namespace {

/// What is differentiated together.
struct Turn {
  Tensors roots, tangents;
};

/// Those that are tried, one after the other.
std::vector<Turn> turns_of(const Tensors& roots, Tangents how, bool roots_alone) {
  const Tensors tangents = tangents_of(roots);
  if (how == Tangents::Together) return {{roots, tangents}};
  std::vector<Turn> turns;
  for (size_t turn = 0; turn < roots.size(); ++turn) {
    if (roots_alone) {
      turns.push_back({{roots[turn]}, {tangents[turn]}});
      continue;
    }
    turns.push_back({roots, {}});
    for (size_t k = 0; k < tangents.size(); ++k)
      turns.back().tangents.push_back(k == turn ? tangents[k] : at::zeros_like(tangents[k]));
  }
  return turns;
}

/// A view that cannot be differentiated has no edge; the backward will say so.
size_t sums_of(const Tensors& roots) {
  size_t sums = 0;
  (void)failure_of([&] { sums = sums_of_gradients(roots); });
  return sums;
}

}  // namespace

Tensors tangents_of(const Tensors& roots) {
  Tensors tangents;
  for (const at::Tensor& root : roots)
    tangents.push_back(torch::randn(root.sizes(), at::TensorOptions(root.scalar_type())));
  return tangents;
}

Tensors with_gradient(const Tensors& tensors) {
  Tensors found;
  for (const at::Tensor& t : tensors)
    if (t.defined() && t.requires_grad()) found.push_back(t);
  return found;
}

/// A random choice of outputs and written inputs that have a gradient.
Tensors Run::choose_roots() {
  Tensors roots;
  auto offer = [&](const at::Tensor& t) {
    if (t.defined() && t.requires_grad() && at::isFloatingType(t.scalar_type())) roots.push_back(t);
  };
  for (const at::Tensor& t : outputs_) offer(t);
  for (size_t k = 0; k < scene_.pool.size(); ++k)
    if (written_[k] && !scene_.pool[k].is_leaf()) offer(scene_.pool[k]);
  Tensors chosen;
  for (size_t k = 0; k < roots.size(); ++k)
    if (((call_.seed * 2654435761u) >> (8 + k)) % 4 != 0) chosen.push_back(roots[k]);
  return chosen.empty() ? roots : chosen;
}

Tensors Run::leaves() const {
  Tensors all = scene_.leaves;
  for (const at::Tensor& t : scene_.pool)
    if (t.is_leaf() && t.requires_grad() &&
        std::none_of(all.begin(), all.end(), [&](const at::Tensor& l) { return l.is_same(t); }))
      all.push_back(t);
  return all;
}

/// A sum has the layout of what arrives first, which may be another gradient where several come from
/// outside; a write to an output that has no base outside takes another road through autograd than a write
/// to a view; a written view is differentiated through its base, and given tensors that share written
/// memory are one input to compiled code.
bool Run::layout_matters(const std::string& kind, const Tensors& roots) const {
  return kind != gradient_after_writes && !writes_views() && (roots.size() == 1 || sums_of(roots) == 0);
}

bool Run::writes_views() const {
  for (size_t k = 0; k < scene_.pool.size(); ++k)
    for (size_t j = 0; j < scene_.pool.size() && written_[k]; ++j)
      if (scene_.pool[k].is_view() ||
          (!scene_.pool[j].is_same(scene_.pool[k]) && share_memory(scene_.pool[j], scene_.pool[k])))
        return true;
  return false;
}

/// Eager decides, since its graph shows every gradient.
Tangents Run::decide(const std::string& kind, const Tensors& roots) {
  if (call_.manner != nullptr) {
    auto decided = call_.manner->tangents.find(kind);
    return decided == call_.manner->tangents.end() ? Tangents::Together : decided->second;
  }
  Tangents how = Tangents::Together;
  if ((roots.size() > 1 || call_.history) && sums_of(roots) > 0)
    how = call_.history ? Tangents::None : Tangents::OneByOne;
  if (how == Tangents::OneByOne) found_.manner.concessions.insert("tangents one by one");
  if (how == Tangents::None) found_.manner.concessions.insert("no gradients through two calls");
  return found_.manner.tangents[kind] = how;
}

Exactness Run::exactness(Tangents how) const {
  return subject_.rounded            ? Exactness::Rounded
         : how == Tangents::OneByOne ? Exactness::Numbers
                                     : Exactness::Bits;
}

void Run::differentiate(const std::string& kind) {
  const Tensors roots = choose_roots(), wanted = leaves();
  if (roots.empty() || wanted.empty()) return;
  const Tangents how = decide(kind, roots);
  if (how == Tangents::None) return;
  found_.differentiated = true;
  torch::manual_seed(call_.seed + 2);
  for (const auto& [of, tangents] : turns_of(roots, how, subject_.roots_alone)) {
    Tensors before, gradients;
    for (const at::Tensor& t : tangents) before.push_back(t.clone());
    // Under create_graph autograd adds nothing in place.
    const std::string failure = failure_of([&] {
      gradients = torch::autograd::grad(of, wanted, tangents, /*retain_graph=*/true,
                                        /*create_graph=*/subject_.sums_anew, /*allow_unused=*/true);
    });
    if (subject_.sums_anew)
      for (at::Tensor& gradient : gradients)
        if (gradient.defined()) gradient = gradient.detach();
    see(kind, 0, failure.empty() ? has_gradients : refused_gradients, failure);
    for (size_t k = 0; k < gradients.size(); ++k)
      see_tensor(kind, k, gradients[k], exactness(how), layout_matters(kind, roots));
    const bool left_alone =
        std::equal(tangents.begin(), tangents.end(), before.begin(),
                   [](const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); });
    see("tangents of " + kind, 0, left_alone ? "as they were" : "written");
  }
}

/// Whether the history of the call falls apart where it is compiled: the caller gets what others are computed
/// from, or views of what he may not get.
bool Run::has_several_nodes() const {
  Tensors visible = computed_outputs();
  for (size_t k = 0; k < scene_.pool.size(); ++k)
    if (written_[k] && scene_.pool[k].defined() && !scene_.pool[k].is_leaf())
      visible.push_back(scene_.pool[k]);
  std::set<const torch::autograd::Node*> theirs;
  for (const at::Tensor& t : visible) {
    if (t.is_view()) return true;
    theirs.insert(t.grad_fn().get());
  }
  return std::any_of(visible.begin(), visible.end(), [&](const at::Tensor& t) {
    const auto nodes = nodes_behind({t});
    return std::any_of(nodes.begin(), nodes.end(), [&](const torch::autograd::Node* node) {
      return node != t.grad_fn().get() && theirs.contains(node);
    });
  });
}

/// Gradients of gradients, of two orders, or of three for some.
void Run::differentiate_again() {
  const Tensors roots = choose_roots(), wanted = leaves();
  if (roots.empty() || wanted.empty() || call_.history) return;
  const Tangents how = decide("gradient of higher order", roots);
  torch::manual_seed(call_.seed + 3);
  const size_t orders = call_.seed % 4 == 0 ? 3 : 2;
  const bool may_move = subject_.rounded_above && !subject_.rounded && has_several_nodes();
  const auto shaking = subject_.shaken != 0 ? std::make_shared<Shaking>(subject_.shaken) : nullptr;
  for (auto [of, given] : turns_of(roots, how, subject_.roots_alone)) {
    for (size_t order = 1; order <= orders && !of.empty(); ++order) {
      Tensors gradients;
      const std::string failure = failure_of([&] {
        if (shaking) shaking->shake(of);
        gradients = torch::autograd::grad(of, wanted, given, true, /*create_graph=*/order < orders, true);
      });
      const std::string kind = "gradient of order " + std::to_string(order);
      see(kind, 0, failure.empty() ? has_gradients : refused_gradients, failure);
      for (size_t k = 0; k < gradients.size(); ++k)
        see_tensor(kind, k, gradients[k], order > 1 && may_move ? Exactness::Moved : exactness(how),
                   /*layout_matters=*/false);
      found_.twice = found_.twice || (order > 1 && !gradients.empty());
      of = with_gradient(gradients);
      given = tangents_of(of);
    }
  }
}

}  // namespace tandem::fuzz
