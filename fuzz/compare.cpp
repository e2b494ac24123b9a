#include "fuzz/compare.h"

#include "fuzz/expect.h"
#include "fuzz/state.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace tandem::fuzz {

namespace {

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
  asked.rounds = setup.rounds;
  if (asked.rounds) {
    // Elements only move further with every time, so what a few times forgive, all of them do.
    for (uint64_t shakes : {uint64_t(2), subject.shakes}) {
      asked.shakes = shakes;
      outcome = compare_with(expect(asked), asked, setup);
      outcome.concessions.insert("what eager rounds is rounded otherwise");
      if (!outcome.mismatch) return outcome;
    }
  }
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
