/// Runs a program as it is and compiled, on equal tensors, and compares everything that a caller can see.
#pragma once

#include "fuzz/program.h"

#include <tandem/tandem.h>

#include <functional>
#include <optional>
#include <set>

namespace tandem::fuzz {

/// What is compared: a program, or a C++ function that was printed from one.
struct Subject {
  std::function<Scene(uint64_t seed, const Scene* before)> scene;
  std::vector<size_t> arguments;             ///< which of the scene's pool are passed
  std::function<Tensors(Tensors pool)> run;  ///< of all given tensors
  uint64_t data = 0;
  bool higher_orders = false;  ///< higher orders are compared as well
  /// `run` without what nobody reads, where there is such
  std::function<Tensors(Tensors pool)> needed = {};
  bool sums_anew = false;  ///< autograd adds gradients to new tensors, and not in place
  /// where tangents are not together, each output is differentiated without the others
  bool roots_alone = false;
  bool rounded = false;  ///< of gradients the last bits are left out
  /// gradients of gradients may differ by as much as eager's move with their rounding
  bool rounded_above = false;
  uint64_t shaken = 0;       ///< not 0: they are computed with other rounding, at random
  uint64_t shakes = 8;       ///< so often eager is asked how far it moves
  bool rounds = false;       ///< compiled code may round all that eager rounds otherwise
  bool keeps_state = false;  ///< it keeps tensors beyond a call
};
Subject subject_of(const Program& program);

/// The ways to compile that are tried: each backend, with writes to inputs kept in the graph and returned
/// from it.
struct Setup {
  std::vector<std::string> backends = {"eager", "debug"};
  Options options = {.cache = {.enabled = false}};  ///< what they have in common
  /// the backends may round otherwise: what eager rounds is judged as fuzz/tolerance.h says
  bool rounds = false;
  /// with TANDEM_WATCHED_CALLS=all: every call is compared with its record, operator by operator, and must do
  /// the same
  bool watched = false;
  /// set: what is compiled is saved to this folder, forgotten, loaded from it and compared again
  std::filesystem::path cache = {};
};

struct Mismatch {
  /// what differs, without numbers: a shrunk program must fail in the same way
  std::string kind;
  std::string detail;
  std::string setup;  ///< which backend, which way to write
};

struct Outcome {
  std::optional<Mismatch> mismatch;
  bool refused = false;      ///< eager throws
  std::string eager_reason;  ///< why it ran uncompiled; empty: it was compiled
  bool differentiated = false, twice = false;
  bool loaded = false;  ///< it came back from the cache
  /// where less than everything was compared bit for bit; docs/fuzz.md has the reasons
  std::set<std::string> concessions;
};

Outcome compare(const Subject& subject, const Setup& setup = {});

}  // namespace tandem::fuzz
