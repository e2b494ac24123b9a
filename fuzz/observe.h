/// One run of a program, written down as a list of things that can be compared.
#pragma once

#include "fuzz/compare.h"
#include "fuzz/tolerance.h"

#include <map>

namespace tandem::fuzz {

/// How elements are compared. Numbers: 0 and -0 are one, for a view that is rebuilt outside gives the rest of
/// its base a gradient of zeros, and -0 + 0 is 0. Moved: as far as eager's own elements move when what leads
/// to them is rounded otherwise. Tolerated: as fuzz/tolerance.h says.
enum class Exactness : uint8_t { Bits, Numbers, Rounded, Moved, Tolerated };

/// One thing that was seen: some words, and the elements of a tensor where it is one.
struct Seen {
  std::string kind, where, facts;
  std::string words = {};    ///< for the reader; not compared
  std::string layout = {};   ///< strides, where they address something
  std::string strides = {};  ///< all of them
  at::Tensor values = {};    ///< dense, detached; undefined where there is none
  Exactness exact = Exactness::Bits;
  bool layout_matters = true;
  at::Tensor moves = {};  ///< of eager's elements, where that was found out: how far they move
};

/// How gradients are asked for. Where gradients of several roots meet, eager adds them up in one order and
/// the boundary of a compiled function in another, which rounds differently. With tangents of zero for all
/// roots but one the order makes no difference, and every root has its turn.
enum class Tangents : uint8_t { Together, OneByOne, None };

/// What became of a write to an output. Forbidden: eager refuses it for the way in which a view was made (by
/// an operator that returns several, or under no_grad). Spared: some elements may lie in one place.
enum class Write : uint8_t { Taken, Refused, Forbidden, Spared };

/// How a run was made. A compiled run is made as eager's was, so that both do the same.
struct Manner {
  std::map<std::string, Tangents> tangents;  ///< by what is differentiated
  std::vector<Write> writes;                 ///< one an output
  std::set<std::string> concessions;
};

struct Observation {
  std::vector<Seen> seen;
  Manner manner;
  bool refused = false, differentiated = false, twice = false;
  /// other last bits on the way lead elsewhere: something else is refused, or has other sizes
  bool wavers = false;
};

inline const std::string refused_call = "it is refused", has_gradients = "it has gradients",
                         refused_gradients = "its gradients are refused",
                         gradient_after_writes = "gradient after writes to outputs";

/// One call: `history` says that a captured tensor brings the graph of a call before.
struct Call {
  uint64_t seed = 0;
  bool history = false;
  const Manner* manner = nullptr;  ///< eager's; none: this is eager's
};

/// Calls `program` (which is given the arguments and reaches captured tensors by itself) on the scene,
/// differentiates, writes the outputs, differentiates again.
Observation observe(const Callable& program, Scene& scene, const Subject& subject, const Call& call);

/// Eager's own observation of a call: `copies` is the same with every saved value copied, where eager would
/// not differentiate after writes to outputs.
struct Expected {
  Observation eager;
  std::optional<Observation> copies = {};
};

/// The first difference, or nothing; adds to `concessions`.
std::optional<Mismatch> difference(const Expected& want, const Observation& got,
                                   std::set<std::string>& concessions);

}  // namespace tandem::fuzz
