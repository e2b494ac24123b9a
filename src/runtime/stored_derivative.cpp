// A derivative to what the cache stores of it, and back.
#include "runtime/derivative.h"
#include "runtime/entry.h"

#include "base/log.h"

namespace tandem {
namespace {

/// The name under which the code of a graph is kept among the artifacts: none for code of a user's own compiler, which is asked again when it is needed. Nothing when the code has no bytes.
std::optional<std::string> keep_code(const Executable& code, bool own_compiler, std::map<std::string, std::string>& artifacts) {
  if (own_compiler) return std::string();
  auto bytes = code.artifact();
  if (!bytes) return std::nullopt;
  std::string payload(bytes->begin(), bytes->end());
  std::string name = cache::sha256(payload);
  artifacts.emplace(name, std::move(payload));
  return name;
}

}  // namespace

std::optional<cache::StoredOrder> Derivative::stored(std::map<std::string, std::string>& artifacts) const {
  cache::StoredOrder stored;
  stored.joint = packed_.bytes.empty() ? cache::pack(joint_) : packed_;
  stored.halves = halves_;
  stored.returned = returned;
  stored.expected = expected_;
  stored.has_expected = has_expected_;
  stored.variant = variant;
  stored.taken = taken;
  stored.gradients = gradients;
  stored.differentiable = differentiable;
  const Part part = number_ > 1 ? Part::Backward : halves_.backward.empty() ? Part::Inference : Part::Forward;
  auto code = keep_code(*forward, entry_.has_own_compiler(part), artifacts);
  if (!code) return std::nullopt;
  stored.artifact = std::move(*code);
  for (const auto& backward : backwards_.all()) {
    code = keep_code(*backward->code, entry_.has_own_compiler(Part::Backward), artifacts);
    if (!code) return std::nullopt;
    stored.backwards.push_back({backward->variant, backward->saved, backward->gradients, backward->graph, std::move(*code)});
  }
  for (const auto& above : above_.all()) {
    auto order = above->stored(artifacts);
    if (!order) return std::nullopt;
    stored.above.push_back(std::move(*order));
  }
  return stored;
}

Derivative::Derivative(Entry& entry, Order order, const cache::StoredOrder& stored, const std::map<std::string, std::string>& artifacts)
    : entry_(entry), number_(1), order_(std::move(order)) {
  restore(stored, artifacts, stored.halves.backward.empty() ? Part::Inference : Part::Forward);
}

Derivative::Derivative(const Derivative& below, const cache::StoredOrder& stored, const std::map<std::string, std::string>& artifacts)
    : entry_(below.entry_), below_(&below), number_(below.number_ + 1) {
  restore(stored, artifacts, Part::Backward);
}

void Derivative::restore(const cache::StoredOrder& stored, const std::map<std::string, std::string>& artifacts, Part part) {
  packed_ = stored.joint;
  halves_ = stored.halves;
  returned = stored.returned;
  expected_ = stored.expected;
  has_expected_ = stored.has_expected;
  variant = stored.variant;
  taken = stored.taken;
  gradients = stored.gradients;
  differentiable = stored.differentiable;
  if (logs("joint")) log_joint(joint().graph);
  find_shared_versions();
  if (number_ == 1 && !halves_.backward.empty()) find_leftovers();
  forward = entry_.load(stored.artifact, artifacts, halves_.forward, part, number_);
  for (const cache::StoredBackward& backward : stored.backwards)
    backwards_.add(std::make_unique<BackwardCode>(BackwardCode{backward.variant, entry_.load(backward.artifact, artifacts, backward.graph, Part::Backward, number_), backward.saved,
                                                                     backward.gradients, backward.graph, given_up({asked_of(backward.variant)}, backward.saved)}));
  for (const cache::StoredOrder& order : stored.above) above_.add(std::make_unique<Derivative>(*this, order, artifacts));
}

const Joint& Derivative::joint() const {
  if (!packed_.bytes.empty()) {
    joint_ = cache::unpack(packed_);
    packed_.bytes.clear();
  }
  return joint_;
}

}  // namespace tandem
