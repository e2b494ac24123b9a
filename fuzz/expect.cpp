#include "fuzz/expect.h"

#include "fuzz/saved_copies.h"
#include "fuzz/shaken_operators.h"
#include "fuzz/state.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace tandem::fuzz {

namespace {

constexpr uint64_t calls = 2;

bool is_argument(const Subject& subject, size_t place) {
  return std::find(subject.arguments.begin(), subject.arguments.end(), place) != subject.arguments.end();
}

/// Whether a captured tensor was made by a call before.
bool has_history(const Subject& subject, const Scene& scene) {
  for (size_t k = 0; k < scene.pool.size(); ++k)
    if (!is_argument(subject, k) && !scene.pool[k].is_leaf()) return true;
  return false;
}

}  // namespace

Callable callable_of(const Subject& subject, const std::shared_ptr<Stage>& stage) {
  return [subject, stage](const Tensors& arguments) {
    Tensors pool(stage->scene.pool.size());
    for (size_t k = 0; k < pool.size(); ++k)
      if (!is_argument(subject, k)) pool[k] = stage->scene.pool[k];
    for (size_t k = 0; k < arguments.size(); ++k) pool[subject.arguments[k]] = arguments[k];
    return subject.run(std::move(pool));
  };
}

std::vector<Observation> observe_calls(const Callable& program, const std::shared_ptr<Stage>& stage,
                                       const Subject& subject, const std::vector<Expected>& eager) {
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

namespace {

std::vector<Observation> observe_eager(const Subject& subject, const std::vector<Expected>& manner = {}) {
  auto stage = std::make_shared<Stage>();
  return observe_calls(callable_of(subject, stage), stage, subject, manner);
}

bool refuses_gradients(const Observation& seen) {
  return std::any_of(seen.seen.begin(), seen.seen.end(),
                     [](const Seen& s) { return s.facts == refused_gradients; });
}

/// What does not depend on last bits.
bool is_alike(const Seen& a, const Seen& b) {
  return a.kind == b.kind && a.facts == b.facts && a.values.defined() == b.values.defined();
}

void note_all_moves(Observation& eager, const Observation& shaken) {
  const bool rounds = std::any_of(eager.seen.begin(), eager.seen.end(),
                                  [](const Seen& seen) { return seen.exact == Exactness::Tolerated; });
  eager.wavers = eager.wavers || (rounds && eager.seen.size() != shaken.seen.size());
  for (size_t k = 0; k < std::min(eager.seen.size(), shaken.seen.size()); ++k) {
    Seen& still = eager.seen[k];
    const at::Tensor& moved = shaken.seen[k].values;
    if (still.exact == Exactness::Tolerated) {
      eager.wavers = eager.wavers || !is_alike(still, shaken.seen[k]);
      if (!eager.wavers && still.values.defined()) note_moves(still.moves, still.values, moved);
    }
    if (still.exact != Exactness::Moved || !still.values.defined() || !moved.defined() ||
        moved.sizes() != still.values.sizes())
      continue;
    const at::Tensor moves = (moved - still.values).abs();
    still.moves = still.moves.defined() ? at::maximum(still.moves, moves) : moves;
  }
}

bool has_copies(const Expected& call) { return call.copies.has_value(); }

/// The same calls as eager's, with other last bits.
std::vector<Observation> observe_shaken(const Subject& subject, const std::vector<Expected>& expected) {
  std::optional<ShakenOperators> otherwise;
  if (subject.rounds) otherwise.emplace(subject.shaken);
  std::vector<Observation> shaken = observe_eager(subject, expected);
  shaken.resize(expected.size());
  return shaken;
}

void find_moves(std::vector<Expected>& expected, Subject subject) {
  constexpr uint64_t apart = 1001;
  for (uint64_t k = 1; k <= subject.shakes; ++k) {
    subject.shaken = k * apart;
    const std::vector<Observation> shaken = observe_shaken(subject, expected);
    for (size_t call = 0; call < expected.size(); ++call) note_all_moves(expected[call].eager, shaken[call]);
    if (std::none_of(expected.begin(), expected.end(), has_copies)) continue;
    const SavedCopies guard;
    const std::vector<Observation> copies = observe_shaken(subject, expected);
    for (size_t call = 0; call < expected.size(); ++call)
      if (expected[call].copies) note_all_moves(*expected[call].copies, copies[call]);
  }
}

}  // namespace

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
  if (subject.rounded_above || subject.rounds) find_moves(expected, subject);
  return expected;
}

}  // namespace tandem::fuzz
