/// What an entry of the cache holds, to bytes and back: all that a compile found out, but for what the trace
/// of the forward and its plan say anyway.
#pragma once

#include "cache/order.h"
#include "key/components.h"

namespace tandem::cache {

/// A joint graph that stays bytes until it is asked for: only a backward that is not there yet needs it, and
/// an order above.
struct PackedJoint {
  std::string bytes;
};
PackedJoint pack(const Joint& joint);
/// Throws Error unless the bytes are a joint graph that verifies.
Joint unpack(const PackedJoint& packed);

struct StoredBackward : BackwardRecord {
  /// name of its code: lower-case hex of 32 bytes; empty where a compiler of the user's own makes it from the
  /// graph
  std::string artifact;
};

/// Where it stands says which order it is: the entry holds the first, each order those above it.
struct StoredOrder : OrderRecord {
  PackedJoint joint;
  std::string artifact;  ///< of the forward
  std::vector<StoredBackward> backwards;
  std::vector<StoredOrder> above;
};

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

}  // namespace tandem::cache
