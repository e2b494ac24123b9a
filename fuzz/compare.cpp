#include "fuzz/compare.h"

#include "fuzz/observe.h"
#include "fuzz/saved_copies.h"
#include "fuzz/state.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace tandem::fuzz {

namespace {

constexpr uint64_t calls = 2;

/// The given tensors of the call that is being made; the compiled function reads its captures from here.
struct Stage {
  Scene scene;
};

bool is_argument(const Subject& subject, size_t place) {
  return std::find(subject.arguments.begin(), subject.arguments.end(), place) != subject.arguments.end();
}

/// Whether a captured tensor was made by a call before.
bool has_history(const Subject& subject, const Scene& scene) {
  for (size_t k = 0; k < scene.pool.size(); ++k)
    if (!is_argument(subject, k) && !scene.pool[k].is_leaf()) return true;
  return false;
}

Callable callable_of(const Subject& subject, const std::shared_ptr<Stage>& stage) {
  return [subject, stage](const Tensors& arguments) {
    Tensors pool(stage->scene.pool.size());
    for (size_t k = 0; k < pool.size(); ++k)
      if (!is_argument(subject, k)) pool[k] = stage->scene.pool[k];
    for (size_t k = 0; k < arguments.size(); ++k) pool[subject.arguments[k]] = arguments[k];
    return subject.run(std::move(pool));
  };
}

/// All calls of one function, each on new data, the captured tensors being the same; made as `eager` was,
/// where there is one.
std::vector<Observation> observe_calls(const Callable& program, const std::shared_ptr<Stage>& stage,
                                       const Subject& subject, const std::vector<Expected>& eager = {}) {
  forget_state();
  std::vector<Observation> seen;
  for (uint64_t call = 0; call < calls && (seen.empty() || !seen.back().refused); ++call) {
    const Scene before = stage->scene;
    try {
      stage->scene = subject.scene(subject.data + 100 * call, call > 0 ? &before : nullptr);
    } catch (const c10::Error&) {
      // A captured tensor, which got other sizes in the call before, may have no such views any more.
      if (call == 0) throw;
      break;
    }
    const Manner* manner = call < eager.size() ? &eager[call].eager.manner : nullptr;
    seen.push_back(
        observe(program, stage->scene, subject,
                {subject.data + 100 * call, call > 0 && has_history(subject, stage->scene), manner}));
  }
  return seen;
}

std::vector<Observation> observe_eager(const Subject& subject, const std::vector<Expected>& manner = {}) {
  auto stage = std::make_shared<Stage>();
  return observe_calls(callable_of(subject, stage), stage, subject, manner);
}

bool refuses_gradients(const Observation& seen) {
  return std::any_of(seen.seen.begin(), seen.seen.end(),
                     [](const Seen& s) { return s.facts == refused_gradients; });
}

void note_moves(Observation& eager, const Observation& shaken) {
  for (size_t k = 0; k < std::min(eager.seen.size(), shaken.seen.size()); ++k) {
    Seen& still = eager.seen[k];
    const at::Tensor& moved = shaken.seen[k].values;
    if (still.exact != Exactness::Moved || !still.values.defined() || !moved.defined() ||
        moved.sizes() != still.values.sizes())
      continue;
    const at::Tensor moves = (moved - still.values).abs();
    still.moves = still.moves.defined() ? at::maximum(still.moves, moves) : moves;
  }
}

void find_moves(std::vector<Expected>& expected, Subject subject) {
  constexpr uint64_t times = 8, apart = 1000;
  for (uint64_t k = 1; k <= times; ++k) {
    subject.shaken = k * apart;
    const std::vector<Observation> shaken = observe_eager(subject, expected);
    for (size_t call = 0; call < std::min(shaken.size(), expected.size()); ++call) {
      note_moves(expected[call].eager, shaken[call]);
      if (expected[call].copies) note_moves(*expected[call].copies, shaken[call]);
    }
  }
}

std::vector<Expected> expect(const Subject& subject) {
  std::vector<Expected> expected;
  for (Observation& eager : observe_eager(subject)) expected.push_back({std::move(eager)});
  if (std::any_of(expected.begin(), expected.end(),
                  [](const Expected& e) { return refuses_gradients(e.eager); })) {
    const SavedCopies guard;
    std::vector<Observation> copies = observe_eager(subject, expected);
    for (size_t call = 0; call < std::min(copies.size(), expected.size()); ++call)
      expected[call].copies = std::move(copies[call]);
  }
  if (subject.rounded_above) find_moves(expected, subject);
  return expected;
}

std::optional<Mismatch> first_difference(const std::vector<Expected>& want,
                                         const std::vector<Observation>& got,
                                         std::set<std::string>& concessions) {
  for (size_t call = 0; call < want.size(); ++call) {
    if (call >= got.size()) return Mismatch{"a call is missing", "", ""};
    if (auto found = difference(want[call], got[call], concessions)) {
      found->detail = "call " + std::to_string(call) + ", " + found->detail;
      return found;
    }
  }
  return std::nullopt;
}

uint64_t compiles() {
  const auto counted = counters();
  uint64_t sum = 0;
  for (const char* name : {"compile_forward", "compile_inference"})
    if (auto found = counted.find(name); found != counted.end()) sum += found->second;
  return sum;
}

/// Why calls like the first one run uncompiled.
std::string reason_of(const Subject& subject, const Options& options) {
  auto stage = std::make_shared<Stage>();
  forget_state();
  stage->scene = subject.scene(subject.data, nullptr);
  Tensors arguments;
  for (size_t place : subject.arguments) arguments.push_back(stage->scene.pool[place]);
  return Compiled(callable_of(subject, stage), options).explain(arguments).eager_reason;
}

uint64_t counted(const char* name) { return counters().at(name); }

/// A function that was compiled and saved, from the cache.
std::optional<Mismatch> compare_loaded(const std::vector<Expected>& want, const Subject& subject,
                                       const Options& options, Outcome& outcome) {
  reset();
  auto stage = std::make_shared<Stage>();
  Compiled loaded(callable_of(subject, stage), options);
  auto mismatch = first_difference(
      want, observe_calls([&](const Tensors& in) { return loaded(in); }, stage, subject, want),
      outcome.concessions);
  outcome.loaded = outcome.loaded || counted("cache_hit") > 0;
  if (mismatch)
    mismatch->kind = "loaded, " + mismatch->kind;
  else if (counted("cache_saved") + counted("cache_unfit") + counted("cache_corrupt") > 0)
    mismatch =
        Mismatch{"what was saved is not loaded", std::to_string(counted("cache_unfit")) + " unfit", ""};
  return mismatch;
}

/// Every way of compiling, against what is expected.
Outcome compare_with(const std::vector<Expected>& want, const Subject& subject, const Setup& setup) {
  Outcome outcome;
  outcome.refused = want[0].eager.refused;
  outcome.differentiated = want[0].eager.differentiated;
  outcome.twice = want[0].eager.twice;
  for (const Expected& call : want)
    outcome.concessions.insert(call.eager.manner.concessions.begin(), call.eager.manner.concessions.end());
  for (const std::string& backend : setup.backends)
    for (bool keep : {true, false}) {
      Options options = setup.options;
      options.backend = backend;
      options.keep_input_mutations = keep;
      options.watched_calls = setup.watched;
      if (!setup.cache.empty()) options.cache = {.enabled = true, .directory = setup.cache};
      const uint64_t before = compiles(), broken = counted("promise_broken");
      auto stage = std::make_shared<Stage>();
      Compiled compiled(callable_of(subject, stage), options);
      outcome.mismatch = first_difference(
          want, observe_calls([&](const Tensors& in) { return compiled(in); }, stage, subject, want),
          outcome.concessions);
      const bool compiled_any = compiles() != before;
      if (!outcome.mismatch && counted("promise_broken") != broken)
        outcome.mismatch = Mismatch{"a promise seems to be broken", reason_of(subject, options), ""};
      if (!outcome.mismatch && !setup.cache.empty())
        outcome.mismatch = compare_loaded(want, subject, options, outcome);
      if (outcome.mismatch) {
        outcome.mismatch->setup = "backend " + backend + (keep ? ", writes kept" : ", writes returned");
        return outcome;
      }
      if (!outcome.refused && outcome.eager_reason.empty() && !compiled_any && !outcome.loaded)
        outcome.eager_reason = reason_of(subject, options);
    }
  return outcome;
}

}  // namespace

Subject subject_of(const Program& program) {
  return {
      .scene = [program](uint64_t seed, const Scene* before) { return make_scene(program, seed, before); },
      .arguments = arguments_of(program),
      .run = [program](Tensors pool) { return interpret(program, std::move(pool)); },
      .data = program.data,
      .higher_orders = program.higher_orders,
      .needed = [program](Tensors pool) { return interpret(without_unread(program), std::move(pool)); },
      .keeps_state = keeps_state(program)};
}

namespace {

/// What is asked again where something differs, and all of which must be the same then.
struct Concession {
  const char* name;
  std::function<bool(const Outcome& outcome, const Subject& subject)> applies;
  std::vector<std::function<void(Subject& eager, Subject& compiled)>> questions;
};

bool rounds_gradients_otherwise(const Outcome& outcome, const Subject&) {
  return outcome.mismatch->kind.starts_with("gradient") && outcome.mismatch->kind.ends_with("other values");
}

const std::vector<Concession>& concessions() {
  static const std::vector<Concession> all = {
      {"eager's error lies in a value that nobody reads",
       [](const Outcome& outcome, const Subject& subject) {
         return outcome.mismatch->kind == "call: otherwise" &&
                outcome.mismatch->detail.find("eager:    " + refused_call) != std::string::npos &&
                subject.needed;
       },
       {[](Subject& eager, Subject&) { eager.run = eager.needed; }}},
      {"eager adds gradients in place, and products round by strides that address nothing",
       rounds_gradients_otherwise,
       {[](Subject& eager, Subject&) { eager.sums_anew = true; }}},
      {"products round by the layout of gradients that meet outside",
       [](const Outcome& outcome, const Subject& subject) {
         return rounds_gradients_otherwise(outcome, subject) &&
                outcome.concessions.contains("tangents one by one");
       },
       {[](Subject& eager, Subject& compiled) { eager.roots_alone = compiled.roots_alone = true; },
        [](Subject& eager, Subject& compiled) { eager.rounded = compiled.rounded = true; }}},
  };
  return all;
}

}  // namespace

/// Whether the trace of a program that keeps state is refused: what it kept by then, it keeps once more when
/// it runs as it is.
bool keeps_state_twice(const Subject& subject, const Setup& setup) {
  if (!subject.keeps_state) return false;
  const std::string reason = reason_of(subject, setup.options);
  return !reason.empty() && reason.find("it keeps") == reason.npos;
}

Outcome compare(const Subject& subject, const Setup& setup) {
  Outcome outcome = compare_with(expect(subject), subject, setup);
  if (!outcome.mismatch) return outcome;
  if (keeps_state_twice(subject, setup)) {
    outcome.mismatch.reset();
    outcome.concessions.insert("state is kept twice where a trace is refused");
    return outcome;
  }
  Subject asked = subject;
  asked.rounded_above = subject.higher_orders;
  if (asked.rounded_above && rounds_gradients_otherwise(outcome, subject)) {
    outcome = compare_with(expect(asked), asked, setup);
    if (!outcome.mismatch) return outcome;
  }
  for (const Concession& concession : concessions()) {
    if (!concession.applies(outcome, subject)) continue;
    Outcome again;
    for (const auto& ask : concession.questions) {
      Subject eager = asked, compiled = asked;
      ask(eager, compiled);
      again = compare_with(expect(eager), compiled, setup);
      if (again.mismatch) break;
    }
    if (again.mismatch) continue;
    again.concessions.insert(concession.name);
    return again;
  }
  return outcome;
}

}  // namespace tandem::fuzz
