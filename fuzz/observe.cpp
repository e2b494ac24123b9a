#include "fuzz/observe.h"

#include "fuzz/meeting.h"
#include "fuzz/saved_copies.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sstream>

namespace tandem::fuzz {

namespace {


at::Tensor values_of(const at::Tensor& t) {
  at::NoGradGuard no_grad;
  return t.defined() ? t.detach().clone(at::MemoryFormat::Contiguous) : t;
}

/// The sentence of what `call` throws; empty when it throws nothing.
template <class Call>
std::string failure_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

/// Asked for the gradient's function first, which a view of a written tensor makes only then.
std::string facts_of(const at::Tensor& t) {
  if (!t.defined()) return "undefined";
  std::ostringstream out;
  const bool stale = !failure_of([&] { (void)t.grad_fn(); }).empty();
  out << t.scalar_type() << t.sizes() << (t.requires_grad() ? " requires_grad" : "") << (t.is_leaf() ? " leaf" : "") << (stale ? " cannot be differentiated" : "");
  return out.str();
}

std::string layout_of(const at::Tensor& t) {
  std::string text = "strides";
  for (int64_t d = 0; t.defined() && t.numel() > 0 && d < t.dim(); ++d) text += t.size(d) > 1 ? " " + std::to_string(t.stride(d)) : " _";
  return text;
}

std::string strides_of(const at::Tensor& t) { return t.defined() ? c10::str(t.strides()) : ""; }

bool share_memory(const at::Tensor& a, const at::Tensor& b) { return a.defined() && b.defined() && a.numel() > 0 && b.numel() > 0 && a.storage().is_alias_of(b.storage()); }

Tensors tangents_of(const Tensors& roots) {
  Tensors tangents;
  for (const at::Tensor& root : roots) tangents.push_back(torch::randn(root.sizes(), at::TensorOptions(root.scalar_type())));
  return tangents;
}

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
    for (size_t k = 0; k < tangents.size(); ++k) turns.back().tangents.push_back(k == turn ? tangents[k] : at::zeros_like(tangents[k]));
  }
  return turns;
}

Tensors with_gradient(const Tensors& tensors) {
  Tensors found;
  for (const at::Tensor& t : tensors)
    if (t.defined() && t.requires_grad()) found.push_back(t);
  return found;
}

/// One call and what follows it.
class Run {
 public:
  Run(const Callable& program, Scene& scene, const Subject& subject, const Call& call) : program_(program), scene_(scene), subject_(subject), call_(call) {}

  Observation go() {
    if (!call_program()) return std::move(found_);
    SavedCopies::freeze();
    see_state("call");
    see_sharing();
    differentiate("gradient");
    differentiate_between();
    if (subject_.higher_orders) differentiate_again();
    write_outputs();
    see_state("write to outputs");
    differentiate(gradient_after_writes);
    see_refused_writes();
    return std::move(found_);
  }

 private:
  bool call_program() {
    Tensors arguments;
    for (size_t place : subject_.arguments) arguments.push_back(scene_.pool[place]);
    std::vector<uint32_t> before;
    for (const at::Tensor& t : scene_.pool) before.push_back(t._version());
    torch::manual_seed(call_.seed + 1);
    const std::string failure = failure_of([&] { outputs_ = program_(arguments); });
    found_.refused = !failure.empty();
    see("call", 0, failure.empty() ? std::string("it runs") : refused_call, failure);
    for (size_t k = 0; k < before.size() && failure.empty(); ++k) {
      written_.push_back(scene_.pool[k]._version() > before[k]);
      see("written input", k, written_.back() ? "written" : "not written");
    }
    if (failure.empty()) see_tensor("next random number", 0, torch::rand({1}));
    return failure.empty();
  }

  void see(const std::string& kind, size_t k, const std::string& facts, const std::string& words = "") { found_.seen.push_back({kind, kind + " " + std::to_string(k), facts, words}); }
  void see_tensor(const std::string& kind, size_t k, const at::Tensor& t, Exactness exact = Exactness::Bits, bool layout_matters = true) {
    found_.seen.push_back({kind, kind + " " + std::to_string(k), facts_of(t), "", layout_of(t), strides_of(t), values_of(t), exact, layout_matters});
  }

  void see_state(const std::string& when) {
    for (size_t k = 0; k < outputs_.size(); ++k) see_tensor("output after " + when, k, outputs_[k]);
    for (size_t k = 0; k < scene_.pool.size(); ++k) see_tensor("input after " + when, k, scene_.pool[k]);
    for (size_t k = 0; k < scene_.leaves.size(); ++k) see_tensor("held gradient after " + when, k, scene_.leaves[k].grad());
  }

  void see_sharing() {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      std::string facts;
      for (size_t j = 0; j < k; ++j) facts += relation(outputs_[k], outputs_[j], "output " + std::to_string(j));
      for (size_t j = 0; j < scene_.pool.size(); ++j) facts += relation(outputs_[k], scene_.pool[j], "input " + std::to_string(j));
      see("sharing", k, facts);
    }
  }
  static std::string relation(const at::Tensor& a, const at::Tensor& b, const std::string& name) {
    if (a.defined() && a.is_same(b)) return " is " + name;
    if (!share_memory(a, b)) return "";
    const auto distance = static_cast<const char*>(a.const_data_ptr()) - static_cast<const char*>(b.const_data_ptr());
    return " shares memory with " + name + " at a distance of " + std::to_string(distance) + " bytes";
  }

  /// A random choice of outputs and written inputs that have a gradient.
  Tensors choose_roots() {
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

  Tensors leaves() const {
    Tensors all = scene_.leaves;
    for (const at::Tensor& t : scene_.pool)
      if (t.is_leaf() && t.requires_grad() && std::none_of(all.begin(), all.end(), [&](const at::Tensor& l) { return l.is_same(t); })) all.push_back(t);
    return all;
  }

  /// A view that cannot be differentiated has no edge; the backward will say so.
  static size_t sums_of(const Tensors& roots) {
    size_t sums = 0;
    (void)failure_of([&] { sums = sums_of_gradients(roots); });
    return sums;
  }

  /// A sum has the layout of what arrives first, which may be another gradient where several come from outside; a write to an output that has no base outside takes
  /// another road through autograd than a write to a view; a written view is differentiated through its base, and given tensors that share written memory are one input to compiled code.
  bool layout_matters(const std::string& kind, const Tensors& roots) const {
    return kind != gradient_after_writes && !writes_views() && (roots.size() == 1 || sums_of(roots) == 0);
  }

  bool writes_views() const {
    for (size_t k = 0; k < scene_.pool.size(); ++k)
      for (size_t j = 0; j < scene_.pool.size() && written_[k]; ++j)
        if (scene_.pool[k].is_view() || (!scene_.pool[j].is_same(scene_.pool[k]) && share_memory(scene_.pool[j], scene_.pool[k]))) return true;
    return false;
  }

  /// Eager decides, since its graph shows every gradient.
  Tangents decide(const std::string& kind, const Tensors& roots) {
    if (call_.manner != nullptr) {
      auto decided = call_.manner->tangents.find(kind);
      return decided == call_.manner->tangents.end() ? Tangents::Together : decided->second;
    }
    Tangents how = Tangents::Together;
    if ((roots.size() > 1 || call_.history) && sums_of(roots) > 0) how = call_.history ? Tangents::None : Tangents::OneByOne;
    if (how == Tangents::OneByOne) found_.manner.concessions.insert("tangents one by one");
    if (how == Tangents::None) found_.manner.concessions.insert("no gradients through two calls");
    return found_.manner.tangents[kind] = how;
  }

  Exactness exactness(Tangents how) const { return subject_.rounded ? Exactness::Rounded : how == Tangents::OneByOne ? Exactness::Numbers : Exactness::Bits; }

  void differentiate(const std::string& kind) {
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
      const std::string failure = failure_of([&] { gradients = torch::autograd::grad(of, wanted, tangents, /*retain_graph=*/true, /*create_graph=*/subject_.sums_anew, /*allow_unused=*/true); });
      if (subject_.sums_anew)
        for (at::Tensor& gradient : gradients)
          if (gradient.defined()) gradient = gradient.detach();
      see(kind, 0, failure.empty() ? has_gradients : refused_gradients, failure);
      for (size_t k = 0; k < gradients.size(); ++k) see_tensor(kind, k, gradients[k], exactness(how), layout_matters(kind, roots));
      const bool left_alone = std::equal(tangents.begin(), tangents.end(), before.begin(), [](const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); });
      see("tangents of " + kind, 0, left_alone ? "as they were" : "written");
    }
  }

  /// Outputs that the program computed. Those on memory of given tensors are the caller's own views of these.
  Tensors computed_outputs() const {
    Tensors computed;
    auto is_in = [](const Tensors& tensors, const auto& fits) { return std::any_of(tensors.begin(), tensors.end(), fits); };
    for (const at::Tensor& t : with_gradient(outputs_)) {
      const bool is_view = is_in(scene_.pool, [&](const at::Tensor& given) { return !given.is_same(t) && given.storage().is_alias_of(t.storage()); });
      const bool is_there = is_in(computed, [&](const at::Tensor& other) { return other.is_same(t); });
      if (!t.is_leaf() && at::isFloatingType(t.scalar_type()) && !is_view && !is_there) computed.push_back(t);
    }
    return computed;
  }

  /// Each output with respect to the others, and what hooks on these see while the leaves are asked for.
  void differentiate_between() {
    const std::string kind = "gradient between outputs";
    const Tensors visible = computed_outputs();
    if (visible.size() < 2 || subject_.sums_anew || !decide_between(kind, visible)) return;
    torch::manual_seed(call_.seed + 4);
    const Tensors tangents = tangents_of(visible);
    for (size_t of = 0; of < visible.size(); ++of) {
      Tensors others = visible;
      others.erase(others.begin() + int64_t(of));
      see_where_eager_answers(kind, of, [&] { return torch::autograd::grad({visible[of]}, others, {tangents[of]}, true, false, true); });
      if (!has_hooks_) see_where_eager_answers("gradient that a hook sees", of, [&] { return seen_by_hooks(visible, of, tangents[of]); });
    }
  }

  /// Where eager refuses, compiled code must, or have no gradient at all: eager may fail in other results of an operator
  /// than those that are asked for.
  void see_where_eager_answers(const std::string& kind, size_t of, const std::function<Tensors()>& ask) {
    const std::string turn = kind + " " + std::to_string(of);
    const auto* eagers = call_.manner != nullptr ? &call_.manner->tangents : nullptr;
    const auto decided = eagers ? eagers->find(turn) : std::map<std::string, Tangents>::const_iterator();
    const bool is_decided = eagers && decided != eagers->end();
    if (is_decided && decided->second == Tangents::None) return;
    Tensors found;
    const std::string failure = failure_of([&] { found = ask(); });
    const bool has_none = std::none_of(found.begin(), found.end(), [](const at::Tensor& t) { return t.defined(); });
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
    for (size_t k = 0; k < found.size() && !refuses; ++k) see_tensor(kind, k, found[k], between_exactness(), /*layout_matters=*/false);
  }

  /// Nothing where the output leads to no leaf.
  Tensors seen_by_hooks(const Tensors& visible, size_t of, const at::Tensor& tangent) const {
    const Tensors wanted = leaves();
    if (wanted.empty()) return {};
    Tensors seen(visible.size()), gradients;
    std::vector<unsigned> hooks;
    for (size_t k = 0; k < visible.size(); ++k)
      hooks.push_back(visible[k].register_hook([&seen, k](const at::Tensor& gradient) {
        // Eager's engine brings nothing to the other results of an operator, and ours to what other outputs of a node lead to.
        if (gradient.defined()) seen[k] = gradient.clone();
      }));
    const std::string failure = failure_of([&] { gradients = torch::autograd::grad({visible[of]}, wanted, {tangent}, true, false, true); });
    for (size_t k = 0; k < visible.size(); ++k) visible[k].remove_hook(hooks[k]);
    if (!failure.empty()) throw std::runtime_error(failure);
    return std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& t) { return t.defined(); }) ? Tensors() : seen;
  }

  Exactness between_exactness() const { return subject_.rounded ? Exactness::Rounded : Exactness::Numbers; }

  /// A write to a part of a tensor may keep the whole history in one node. An input that is a view when it is written, and what
  /// shares its memory, has its history from its base; one that gets other sizes in place, from the caller's side of the call.
  bool decide_between(const std::string& kind, const Tensors& visible) {
    has_hooks_ = false;
    if (call_.manner != nullptr) {
      has_hooks_ = call_.manner->tangents.contains("hooks");
      return !call_.manner->tangents.contains(kind);
    }
    bool parts = true;                       // of views that cannot be differentiated nothing is known
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

  bool shares_written_memory(const Tensors& visible) const {
    for (size_t k = 0; k < scene_.pool.size(); ++k)
      for (const at::Tensor& t : visible)
        if (written_[k] && (t.is_same(scene_.pool[k]) ? was_reshaped_in_place(t) : t.storage().is_alias_of(scene_.pool[k].storage()))) return true;
    return false;
  }

  /// Gradients of gradients, of two orders, or of three for some.
  void differentiate_again() {
    const Tensors roots = choose_roots(), wanted = leaves();
    if (roots.empty() || wanted.empty() || call_.history) return;
    const Tangents how = decide("gradient of higher order", roots);
    torch::manual_seed(call_.seed + 3);
    const size_t orders = call_.seed % 4 == 0 ? 3 : 2;
    for (auto [of, given] : turns_of(roots, how, subject_.roots_alone)) {
      for (size_t order = 1; order <= orders && !of.empty(); ++order) {
        Tensors gradients;
        const std::string failure = failure_of([&] { gradients = torch::autograd::grad(of, wanted, given, true, /*create_graph=*/order < orders, true); });
        const std::string kind = "gradient of order " + std::to_string(order);
        see(kind, 0, failure.empty() ? has_gradients : refused_gradients, failure);
        for (size_t k = 0; k < gradients.size(); ++k) see_tensor(kind, k, gradients[k], order == 1 ? exactness(how) : Exactness::Rounded, /*layout_matters=*/false);
        found_.twice = found_.twice || (order > 1 && !gradients.empty());
        of = with_gradient(gradients);
        given = tangents_of(of);
      }
    }
  }

  /// Whether some elements may lie in one place.
  static bool repeats_elements(const at::Tensor& t) {
    std::vector<std::pair<int64_t, int64_t>> dims;
    for (int64_t d = 0; t.defined() && d < t.dim(); ++d)
      if (t.size(d) > 1) dims.emplace_back(t.stride(d), t.size(d));
    std::sort(dims.begin(), dims.end());
    int64_t reach = 0;
    for (auto [stride, size] : dims) {
      if (stride <= reach) return true;
      reach += stride * (size - 1);
    }
    return false;
  }

  /// A write below such a view is refused when the view is differentiated.
  bool lies_under_forbidden_view(size_t k) const {
    return std::any_of(outputs_.begin(), outputs_.end(), [&](const at::Tensor& other) {
      // Empty tensors share no memory, but a version.
      if (!outputs_[k].defined() || !other.defined() || !outputs_[k].storage().is_alias_of(other.storage()) || !other.requires_grad()) return false;
      const auto* view = torch::autograd::impl::get_view_autograd_meta(other);
      return view != nullptr && view->has_bw_view() && view->get_creation_meta() != torch::autograd::CreationMeta::DEFAULT;
    });
  }

  void write_outputs() {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      if (call_.manner != nullptr && k < call_.manner->writes.size() && call_.manner->writes[k] != Write::Taken) continue;
      if (call_.manner == nullptr && repeats_elements(outputs_[k])) {
        found_.manner.concessions.insert("tensors that hold one element in several places are not written");
        found_.manner.writes.push_back(Write::Spared);
        continue;
      }
      if (call_.manner == nullptr && lies_under_forbidden_view(k)) {
        found_.manner.concessions.insert("eager forbids writes to such views");
        found_.manner.writes.push_back(Write::Forbidden);
        continue;
      }
      const std::string failure = outputs_[k].defined() ? failure_of([&] { outputs_[k].mul_(2); }) : "undefined";
      const bool forbidden = failure.find("returns multiple views") != std::string::npos || failure.find("created in no_grad mode") != std::string::npos ||
                             failure.find("ZeroTensors are immutable") != std::string::npos;
      if (forbidden) found_.manner.concessions.insert("eager forbids writes to such views");
      found_.manner.writes.push_back(failure.empty() ? Write::Taken : forbidden ? Write::Forbidden : Write::Refused);
      if (failure.empty() || call_.manner != nullptr) see("write to output", k, failure.empty() ? "taken" : "refused", failure);
    }
  }

  /// Tried last, for a write that should be refused and is not would spoil everything behind it.
  void see_refused_writes() {
    const std::vector<Write>& writes = call_.manner != nullptr ? call_.manner->writes : found_.manner.writes;
    for (size_t k = 0; k < outputs_.size() && k < writes.size(); ++k)
      if (writes[k] == Write::Refused) see("refused write to output", k, !outputs_[k].defined() || !failure_of([&] { outputs_[k].mul_(2); }).empty() ? "refused" : "taken");
  }

  const Callable& program_;
  Scene& scene_;
  const Subject& subject_;
  const Call call_;
  Tensors outputs_;
  std::vector<bool> written_;
  bool has_hooks_ = false;                  ///< the program's own, before or behind which others run
  Observation found_;
};

}  // namespace

Observation observe(const Callable& program, Scene& scene, const Subject& subject, const Call& call) { return Run(program, scene, subject, call).go(); }

}  // namespace tandem::fuzz
