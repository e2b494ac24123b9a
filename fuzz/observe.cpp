#include "fuzz/run.h"

#include "fuzz/saved_copies.h"

#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sstream>

namespace tandem::fuzz {

namespace {

at::Tensor values_of(const at::Tensor& t) {
  at::NoGradGuard no_grad;
  return t.defined() ? t.detach().clone(at::MemoryFormat::Contiguous) : t;
}

/// Asked for the gradient's function first, which a view of a written tensor makes only then.
std::string facts_of(const at::Tensor& t) {
  if (!t.defined()) return "undefined";
  std::ostringstream out;
  const bool stale = !failure_of([&] { (void)t.grad_fn(); }).empty();
  out << t.scalar_type() << t.sizes() << (t.requires_grad() ? " requires_grad" : "")
      << (t.is_leaf() ? " leaf" : "") << (stale ? " cannot be differentiated" : "");
  return out.str();
}

std::string layout_of(const at::Tensor& t) {
  std::string text = "strides";
  for (int64_t d = 0; t.defined() && t.numel() > 0 && d < t.dim(); ++d)
    text += t.size(d) > 1 ? " " + std::to_string(t.stride(d)) : " _";
  return text;
}

std::string strides_of(const at::Tensor& t) { return t.defined() ? c10::str(t.strides()) : ""; }

std::string relation(const at::Tensor& a, const at::Tensor& b, const std::string& name) {
  if (a.defined() && a.is_same(b)) return " is " + name;
  if (!share_memory(a, b)) return "";
  const auto distance =
      static_cast<const char*>(a.const_data_ptr()) - static_cast<const char*>(b.const_data_ptr());
  return " shares memory with " + name + " at a distance of " + std::to_string(distance) + " bytes";
}

/// Whether some elements may lie in one place.
bool repeats_elements(const at::Tensor& t) {
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

}  // namespace

Observation observe(const Callable& program, Scene& scene, const Subject& subject, const Call& call) {
  return Run(program, scene, subject, call).go();
}

Observation Run::go() {
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

bool Run::call_program() {
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

void Run::see(const std::string& kind, size_t k, const std::string& facts, const std::string& words) {
  found_.seen.push_back({kind, kind + " " + std::to_string(k), facts, words});
}

void Run::see_tensor(const std::string& kind, size_t k, const at::Tensor& t, Exactness exact,
                     bool layout_matters) {
  found_.seen.push_back({kind, kind + " " + std::to_string(k), facts_of(t), "", layout_of(t), strides_of(t),
                         values_of(t), subject_.rounds ? Exactness::Tolerated : exact, layout_matters});
}

void Run::see_state(const std::string& when) {
  for (size_t k = 0; k < outputs_.size(); ++k) see_tensor("output after " + when, k, outputs_[k]);
  for (size_t k = 0; k < scene_.pool.size(); ++k) see_tensor("input after " + when, k, scene_.pool[k]);
  for (size_t k = 0; k < scene_.leaves.size(); ++k)
    see_tensor("held gradient after " + when, k, scene_.leaves[k].grad());
}

void Run::see_sharing() {
  for (size_t k = 0; k < outputs_.size(); ++k) {
    std::string facts;
    for (size_t j = 0; j < k; ++j) facts += relation(outputs_[k], outputs_[j], "output " + std::to_string(j));
    for (size_t j = 0; j < scene_.pool.size(); ++j)
      facts += relation(outputs_[k], scene_.pool[j], "input " + std::to_string(j));
    see("sharing", k, facts);
  }
}

/// A write below such a view is refused when the view is differentiated.
bool Run::lies_under_forbidden_view(size_t k) const {
  return std::any_of(outputs_.begin(), outputs_.end(), [&](const at::Tensor& other) {
    // Empty tensors share no memory, but a version.
    if (!outputs_[k].defined() || !other.defined() || !outputs_[k].storage().is_alias_of(other.storage()) ||
        !other.requires_grad())
      return false;
    const auto* view = torch::autograd::impl::get_view_autograd_meta(other);
    return view != nullptr && view->has_bw_view() &&
           view->get_creation_meta() != torch::autograd::CreationMeta::DEFAULT;
  });
}

void Run::write_outputs() {
  for (size_t k = 0; k < outputs_.size(); ++k) {
    if (call_.manner != nullptr && k < call_.manner->writes.size() && call_.manner->writes[k] != Write::Taken)
      continue;
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
    const std::string failure =
        outputs_[k].defined() ? failure_of([&] { outputs_[k].mul_(2); }) : "undefined";
    const bool forbidden = failure.find("returns multiple views") != std::string::npos ||
                           failure.find("created in no_grad mode") != std::string::npos ||
                           failure.find("ZeroTensors are immutable") != std::string::npos;
    if (forbidden) found_.manner.concessions.insert("eager forbids writes to such views");
    found_.manner.writes.push_back(failure.empty() ? Write::Taken
                                   : forbidden     ? Write::Forbidden
                                                   : Write::Refused);
    if (failure.empty() || call_.manner != nullptr)
      see("write to output", k, failure.empty() ? "taken" : "refused", failure);
  }
}

/// Tried last, for a write that should be refused and is not would spoil everything behind it.
void Run::see_refused_writes() {
  const std::vector<Write>& writes = call_.manner != nullptr ? call_.manner->writes : found_.manner.writes;
  for (size_t k = 0; k < outputs_.size() && k < writes.size(); ++k)
    if (writes[k] == Write::Refused)
      see("refused write to output", k,
          !outputs_[k].defined() || !failure_of([&] { outputs_[k].mul_(2); }).empty() ? "refused" : "taken");
}

}  // namespace tandem::fuzz
