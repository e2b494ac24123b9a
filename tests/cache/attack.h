/// What must hold of any bytes that are read as an entry, as a graph or as a joint graph.
#pragma once

#include "cache/sample_entry.h"

namespace tandem::test {

inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// Each returns whether the bytes were accepted; anything but an Error goes through. What is accepted is
/// valid and can be written and read again.
inline bool attack_graph(std::string_view bytes) {
  Graph graph;
  try {
    graph = decode_graph(bytes);
  } catch (const Error&) {
    return false;
  }
  graph.verify();
  const std::string again = encode_graph(graph);
  require(encode_graph(decode_graph(again)) == again,
          "a graph that was accepted is another one when it is written and read again");
  return true;
}

inline bool attack_joint(std::string_view bytes) {
  Joint joint;
  try {
    joint = cache::unpack({std::string(bytes)});
  } catch (const Error&) {
    return false;
  }
  joint.graph.verify();
  require(
      joint.primals <= joint.graph.inputs().size() && joint.forward_outputs <= joint.graph.outputs().size(),
      "a joint graph has too few inputs or outputs");
  const std::string again = cache::pack(joint).bytes;
  require(cache::pack(cache::unpack({again})).bytes == again,
          "a joint graph that was accepted is another one when it is written and read again");
  return true;
}

inline bool attack_entry(std::string_view bytes) {
  cache::StoredEntry entry;
  try {
    entry = cache::decode(bytes);
  } catch (const Error&) {
    return false;
  }
  for_each_graph(entry.first, [](const Graph& graph) { graph.verify(); });
  attack_joint(entry.first.joint.bytes);
  const std::string again = cache::encode(entry);
  require(cache::encode(cache::decode(again)) == again,
          "an entry that was accepted is another one when it is written and read again");
  return true;
}

}  // namespace tandem::test
