/// What an entry of the cache holds, to bytes and back: all that a compile found out, but for what the trace
/// of the forward and its plan say anyway.
#pragma once

#include <map>

#include "cache/order.h"
#include "key/components.h"

namespace tandem::cache {

/// Code by its name: lower-case hex of 32 bytes.
using Artifacts = std::map<std::string, std::string>;

/// A joint graph that stays bytes until it is asked for: only a backward that is not there yet needs it, and
/// an order above.
struct PackedJoint {
  std::string bytes;
};
PackedJoint pack(const Joint& joint);
/// Throws Error unless the bytes are a joint graph that verifies.
Joint unpack(const PackedJoint& packed);

/// What of an order only its backwards need, as bytes until the first of them.
struct PackedBackwards {
  std::string bytes;                   ///< none: there is no backward, or it is unpacked
  std::vector<std::string> artifacts;  ///< the code that is named there
};

struct StoredBackward : BackwardRecord {
  /// name of its code; empty where a compiler of the user's own makes it from the graph
  std::string artifact;
};

/// Where it stands says which order it is: the entry holds the first, each order those above it.
struct StoredOrder : OrderRecord {
  PackedJoint joint;
  std::string artifact;  ///< of the forward
  std::vector<StoredBackward> backwards;
  std::vector<StoredOrder> above;
  PackedBackwards packed;  ///< of the first order: what of the backwards is not here yet
  bool has_backward() const { return !packed.bytes.empty() || !halves.backward.empty(); }
};

/// The backward half of an order, its backwards and the orders above.
struct Backwards {
  Graph half;
  std::vector<StoredBackward> backwards;
  std::vector<StoredOrder> above;
};
/// Those of the first order, which `order` is but for them; throws Error unless they are what `decode` would
/// accept.
Backwards unpack(const PackedBackwards& packed, const OrderRecord& order);
/// Puts them into their places.
void unpack_backwards(StoredOrder& first);

/// Every artifact that an order and those above it name.
std::vector<std::string> artifacts_of(const StoredOrder& order);

struct StoredEntry {
  Components components;  ///< of its key
  std::string contract;   ///< as Contract::to_string() has it
  std::string options;    ///< those that matter, as text
  std::string backend, backend_version;
  std::string machine;  ///< what the code was made for
  size_t nodes_recorded = 0;
  int64_t eager_saved_bytes = 0;
  bool reads_offsets = false;
  double trace_seconds = 0, forward_seconds = 0, backward_seconds = 0;  ///< what a hit saves
  StoredOrder first;
};

/// Throws Error, naming the culprit, when a graph holds a constant that has no bytes.
std::string encode(const StoredEntry& entry);

/// Whatever the bytes are: an entry whose graphs verify and whose positions all lie within what they are
/// positions of, or an Error. Memory stays in proportion to the bytes. How the entry fits a call is for the
/// caller to compare.
StoredEntry decode(std::string_view bytes);

/// The same, but only what a first call needs: the backwards stay packed, and texts are left out.
StoredEntry decode_for_call(std::string_view bytes);

}  // namespace tandem::cache
