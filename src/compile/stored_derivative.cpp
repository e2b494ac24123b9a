// A derivative to what the cache stores of it, and back.
#include "compile/derivative.h"

#include "base/counters.h"
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

/// Null where it is not there.
const std::string* find_code(const cache::Artifacts& artifacts, const std::string& name) {
  const auto found = artifacts.find(name);
  return found == artifacts.end() ? nullptr : &found->second;
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

Derivative::Derivative(Compilation& compilation, cache::StoredOrder stored,
                       std::shared_ptr<const Artifacts> artifacts)
    : compilation_(compilation), number_(1), parts_(compilation.first.parts) {
  restore(std::move(stored), std::move(artifacts));
}

Derivative::Derivative(const Derivative& below, cache::StoredOrder stored,
                       std::shared_ptr<const Artifacts> artifacts)
    : compilation_(below.compilation_),
      below_(&below),
      number_(below.number_ + 1),
      parts_({{0, stored.expected.tangents.size(), 0, stored.expected.wanted.size()}}) {
  restore(std::move(stored), std::move(artifacts));
}

void Derivative::restore(cache::StoredOrder stored, std::shared_ptr<const Artifacts> artifacts) {
  for (const std::string& name : stored.packed.artifacts)
    if (!artifacts->contains(name)) throw Error("its code is not there");
  // What each part of several holds, only the backwards say.
  if (parts_.size() > 1) cache::unpack_backwards(stored);
  record_ = std::move(static_cast<OrderRecord&>(stored));
  packed_ = std::move(stored.joint);
  if (!stored.packed.bytes.empty()) closed_ = Closed{std::move(stored.packed), artifacts};
  if (is_observed("joint")) observe(compilation_.toolchain.sight("joint", number_), joint().graph);
  find_shared_versions();
  find_held();
  forward = compilation_.toolchain.load(find_code(*artifacts, stored.artifact), record_.halves.forward,
                                        forward_place());
  if (!closed_) add_stored(std::move(stored.backwards), std::move(stored.above), artifacts);
}

/// One whose code cannot be loaded is compiled when it is asked for.
void Derivative::add_stored(std::vector<cache::StoredBackward> backwards,
                            std::vector<cache::StoredOrder> above,
                            const std::shared_ptr<const Artifacts>& artifacts) {
  if (is_first() && has_backward()) find_leftovers();
  auto try_to = [&](const auto& add) {
    try {
      add();
    } catch (const std::exception& error) {
      compilation_.found_unfit(error.what());
    }
  };
  for (cache::StoredBackward& stored : backwards)
    try_to([&] {
      auto code =
          compilation_.toolchain.load(find_code(*artifacts, stored.artifact), stored.graph_in(record_.halves),
                                      backward_place(stored.saved, backwards_.added()));
      std::vector<size_t> given_up =
          this->given_up({asked_of(stored.variant)}, stored.saved, part_of(parts_, stored.variant));
      backwards_.add(std::make_shared<BackwardCode>(std::move(stored), std::move(code), std::move(given_up)));
    });
  for (cache::StoredOrder& order : above)
    try_to([&] { above_.add(std::make_shared<Derivative>(*this, std::move(order), artifacts)); });
}

void Derivative::open() {
  if (!closed_) return;
  double seconds = 0;
  {
    Stopwatch watch(seconds);
    const Closed closed = std::move(*closed_);
    closed_.reset();
    cache::Backwards read;
    try {
      read = cache::unpack(closed.packed, record_);
      if (read.half.empty()) throw Error("it has no backward");
    } catch (const Error& error) {
      compilation_.found_unfit(error.what());
      read = {std::move(made_again()->record_.halves.backward), {}, {}};
    }
    record_.halves.backward = std::move(read.half);
    add_stored(std::move(read.backwards), std::move(read.above), closed.artifacts);
  }
  count("cache_backward_us", uint64_t(seconds * 1e6));
}

std::unique_ptr<Derivative> Derivative::made_again() const {
  std::unique_ptr<Derivative> again;
  if (below_) {
    again = below_->above(record_.variant);
  } else {
    again = std::make_unique<Derivative>(compilation_);
    JointGraph made = compilation_.recorded([&] {
      return make_joint_graph(compilation_.traced, compilation_.plan, compilation_.first, record_.expected);
    });
    again->split(std::move(made.joint), nullptr);
  }
  if (again->record_.halves.saved != record_.halves.saved ||
      again->record_.halves.forward.hash() != record_.halves.forward.hash())
    throw Error(
        "the cache had another forward than this function has, and a backward that cannot be read; clear the "
        "cache with `tandem cache clear`");
  return again;
}

const Joint& Derivative::joint() const {
  if (packed_.bytes.empty()) return joint_;
  const cache::PackedJoint packed = std::exchange(packed_, {});
  try {
    joint_ = cache::unpack(packed);
  } catch (const Error& error) {
    compilation_.found_unfit(error.what());
    joint_ = std::move(made_again()->joint_);
  }
  return joint_;
}

}  // namespace tandem
