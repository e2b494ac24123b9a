// A derivative to what the cache stores of it, and back.
#include "compile/derivative.h"

#include "base/log.h"
#include "base/sha256.h"

namespace tandem {
namespace {

/// The name under which the code of a graph is kept among the artifacts: none for code of a user's own
/// compiler, which is asked again when it is needed. Nothing when the code has no bytes.
std::optional<std::string> keep_code(const Executable& code, bool own_compiler,
                                     std::map<std::string, std::string>& artifacts) {
  if (own_compiler) return std::string();
  auto bytes = code.artifact();
  if (!bytes) return std::nullopt;
  std::string payload(bytes->begin(), bytes->end());
  std::string name = sha256(payload);
  artifacts.emplace(name, std::move(payload));
  return name;
}

}  // namespace

std::optional<cache::StoredOrder> Derivative::stored(Artifacts& artifacts) const {
  cache::StoredOrder stored{record_};
  stored.joint = packed_.bytes.empty() ? cache::pack(joint_) : packed_;
  auto code =
      keep_code(*forward, compilation_.toolchain.is_of_own_compiler(forward_place().stage), artifacts);
  if (!code) return std::nullopt;
  stored.artifact = std::move(*code);
  for (const auto& backward : backwards_.all()) {
    code = keep_code(*backward->code, compilation_.toolchain.is_of_own_compiler(Stage::Backward), artifacts);
    if (!code) return std::nullopt;
    stored.backwards.push_back({*backward, std::move(*code)});
  }
  for (const auto& above : above_.all()) {
    auto order = above->stored(artifacts);
    if (!order) return std::nullopt;
    stored.above.push_back(std::move(*order));
  }
  return stored;
}

Derivative::Derivative(Compilation& compilation, cache::StoredOrder stored, const Artifacts& artifacts)
    : compilation_(compilation), number_(1), parts_(compilation.first.parts) {
  restore(std::move(stored), artifacts);
}

Derivative::Derivative(const Derivative& below, cache::StoredOrder stored, const Artifacts& artifacts)
    : compilation_(below.compilation_),
      below_(&below),
      number_(below.number_ + 1),
      parts_({{0, stored.expected.tangents.size(), 0, stored.expected.wanted.size()}}) {
  restore(std::move(stored), artifacts);
}

void Derivative::restore(cache::StoredOrder stored, const Artifacts& artifacts) {
  auto load = [&](const std::string& artifact, const Graph& graph, const CodePlace& place) {
    const auto bytes = artifacts.find(artifact);
    return compilation_.toolchain.load(bytes == artifacts.end() ? nullptr : &bytes->second, graph, place);
  };
  record_ = std::move(static_cast<OrderRecord&>(stored));
  packed_ = std::move(stored.joint);
  if (is_observed("joint")) observe(compilation_.toolchain.sight("joint", number_), joint().graph);
  find_shared_versions();
  find_held();
  if (number_ == 1 && !record_.halves.backward.empty()) find_leftovers();
  forward = load(stored.artifact, record_.halves.forward, forward_place());
  for (cache::StoredBackward& backward : stored.backwards) {
    auto code = load(backward.artifact, backward.graph_in(record_.halves),
                     backward_place(backward.saved, backwards_.added()));
    std::vector<size_t> given_up =
        this->given_up({asked_of(backward.variant)}, backward.saved, part_of(parts_, backward.variant));
    backwards_.add(std::make_shared<BackwardCode>(std::move(backward), std::move(code), std::move(given_up)));
  }
  for (cache::StoredOrder& order : stored.above)
    above_.add(std::make_shared<Derivative>(*this, std::move(order), artifacts));
}

const Joint& Derivative::joint() const {
  if (!packed_.bytes.empty()) {
    joint_ = cache::unpack(packed_);
    packed_.bytes.clear();
  }
  return joint_;
}

}  // namespace tandem
