#include "fuzz/program.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>

namespace tandem::fuzz {

namespace {

/// Places that share memory have one root.
class Roots {
 public:
  size_t of(size_t place) {
    while (parents_.contains(place)) place = parents_[place];
    return place;
  }
  void join(size_t a, size_t b) {
    if (of(a) != of(b)) parents_[of(a)] = of(b);
  }

 private:
  std::map<size_t, size_t> parents_;
};

/// Whether a step that eager refuses would write into its first arguments.
bool would_write(const Row& row) { return row.kind == Kind::Write || row.kind == Kind::Shape; }

/// Of this argument the row reads sizes, dtype and layout.
bool reads_sizes_alone(const Row& row, size_t argument) {
  const std::string operand = "(t[" + std::to_string(argument) + "]";
  const std::string_view text = row.text;
  return text.find("_as" + operand) != text.npos || text.find("_like" + operand) != text.npos;
}

/// Of its first argument the row leaves no element as it was, and reads none.
bool overwrites(const Row& row) {
  static const std::vector<std::string_view> beginnings = {
      "t[0].copy_(", "t[0].fill_(", "t[0].zero_(", "t[0].uniform_(", "t[0].normal_(", "t[0].bernoulli_("};
  return std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view beginning) {
    return std::string_view(row.text).starts_with(beginning);
  });
}

/// What changes with a write, or when a tensor starts to require grad.
using WriteState = std::pair<uint32_t, bool>;
std::vector<WriteState> states_of(const Tensors& tensors) {
  std::vector<WriteState> states;
  for (const at::Tensor& t : tensors)
    states.push_back(t.defined() ? WriteState(t._version(), t.requires_grad()) : WriteState());
  return states;
}

at::Tensor random_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

/// Random numbers go on afterwards as if nothing had been.
class RandomStateKept {
 public:
  ~RandomStateKept() { at::Generator(at::detail::getDefaultCPUGenerator()).set_state(state_); }

 private:
  const at::Tensor state_ = random_state();
};

/// What each step of a program does, found by running them one by one; one that eager refuses is left out,
/// and what follows goes on without it.
class Trial {
 public:
  explicit Trial(const Program& program) : pool_(make_scene(program, program.data).pool) {
    for (size_t k = 0; k < pool_.size(); ++k) join_shared(k);
    for (const Step& step : program.steps) run(step);
  }

  struct Effect {
    std::vector<size_t> written;  ///< places
    bool draws = false;
  };
  std::vector<Effect> effects;  ///< one a step
  Roots roots;

  /// All places that lie in the memory of this one, where it is all of that memory and none of it was given;
  /// else this one alone.
  std::vector<size_t> places_within(size_t place, size_t given) {
    const at::Tensor& t = pool_[place];
    std::vector<size_t> places;
    for (size_t other = 0; other < pool_.size(); ++other)
      if (roots.of(other) == roots.of(place)) places.push_back(other);
    const bool is_all = t.defined() && t.is_non_overlapping_and_dense() &&
                        t.nbytes() == t.storage().nbytes() && places.front() >= given;
    return is_all ? places : std::vector<size_t>{place};
  }

 private:
  void run(const Step& step) {
    const Row& row = rows()[step.row];
    Tensors arguments, results;
    for (size_t place : step.arguments)
      arguments.push_back(place < pool_.size() ? pool_[place] : at::Tensor());
    const std::vector<WriteState> before = states_of(arguments);
    const at::Tensor state = random_state();
    Effect effect;
    try {
      at::AutoGradMode mode(!step.no_grad);
      results = row.run(arguments, step.ints);
      const std::vector<WriteState> after = states_of(arguments);
      for (size_t a = 0; a < arguments.size(); ++a)
        if (after[a] != before[a]) effect.written.push_back(step.arguments[a]);
    } catch (const std::exception&) {
      if (would_write(row) && !step.arguments.empty())
        effect.written.assign(step.arguments.begin(),
                              row.nothing ? step.arguments.end() : step.arguments.begin() + 1);
    }
    // On other data it may draw where it does not here.
    effect.draws = row.kind == Kind::Random || !at::equal(state, random_state());
    effects.push_back(std::move(effect));
    for (size_t r = 0; r < step.results.size(); ++r) {
      if (pool_.size() <= step.results[r]) pool_.resize(step.results[r] + 1);
      if (r < results.size()) pool_[step.results[r]] = results[r];
      join_shared(step.results[r]);
    }
  }

  void join_shared(size_t place) {
    for (size_t other = 0; other < pool_.size(); ++other)
      if (other != place && memory_of(pool_[place]) != nullptr &&
          memory_of(pool_[place]) == memory_of(pool_[other]))
        roots.join(place, other);
  }

  static const void* memory_of(const at::Tensor& t) {
    return t.defined() && t.has_storage() ? t.storage().unsafeGetStorageImpl() : nullptr;
  }

  Tensors pool_;
};

/// Of memory that no other step uses.
void drop_writes_of_nothing(Program& program, Roots& roots) {
  std::set<size_t> used;
  for (const Step& step : program.steps)
    if (step.only_counted.empty())
      for (size_t place : step.arguments) used.insert(roots.of(place));
  std::erase_if(program.steps, [&](const Step& step) {
    return !step.only_counted.empty() &&
           std::none_of(step.only_counted.begin(), step.only_counted.end(),
                        [&](size_t place) { return used.contains(roots.of(place)); });
  });
}

}  // namespace

Program without_unread(const Program& program) {
  const RandomStateKept kept;
  Trial trial(program);
  std::set<size_t> live;
  for (size_t place : program.outputs) live.insert(trial.roots.of(place));
  for (size_t k = 0; k < program.given.size(); ++k) live.insert(trial.roots.of(k));
  std::set<size_t> read(program.outputs.begin(), program.outputs.end()), described;
  Program needed = program;
  needed.steps.clear();
  for (size_t s = program.steps.size(); s-- > 0;) {
    const Step& step = program.steps[s];
    const Trial::Effect& effect = trial.effects[s];
    auto any_in = [](const std::vector<size_t>& places, const std::set<size_t>& wanted) {
      return std::any_of(places.begin(), places.end(), [&](size_t place) { return wanted.contains(place); });
    };
    auto is_live = [&](size_t place) { return live.contains(trial.roots.of(place)); };
    const bool matters = effect.draws || any_in(step.results, read) ||
                         std::any_of(effect.written.begin(), effect.written.end(), is_live);
    if (!matters && !any_in(step.results, described)) {
      if (effect.written.empty()) continue;
      needed.steps.insert(needed.steps.begin(), step);
      needed.steps.front().only_counted = effect.written;
      continue;
    }
    needed.steps.insert(needed.steps.begin(), step);
    needed.steps.front().sizes_alone = !matters && rows()[step.row].kind == Kind::Value;
    for (size_t a = 0; a < step.arguments.size(); ++a) {
      const size_t place = step.arguments[a];
      if (a == 0 && overwrites(rows()[step.row])) {
        const std::vector<size_t> lost = trial.places_within(place, program.given.size());
        for (size_t other : lost) read.erase(other), described.insert(other);
        if (lost.size() > 1) live.erase(trial.roots.of(place));
      } else if (!matters || reads_sizes_alone(rows()[step.row], a)) {
        described.insert(place);
      } else {
        read.insert(place);
        live.insert(trial.roots.of(place));
      }
    }
  }
  drop_writes_of_nothing(needed, trial.roots);
  return needed;
}

}  // namespace tandem::fuzz
