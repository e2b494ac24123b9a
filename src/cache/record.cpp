// An entry to bytes.
#include "cache/record.h"

#include <tandem/error.h>

#include "cache/compression.h"
#include "cache/record_format.h"
#include "graph/bytes.h"
#include "graph/constant_bytes.h"
#include "graph/graph_bytes.h"
#include "graph/uses.h"

namespace tandem::cache {
namespace {

class EntryWriter {
 public:
  std::string write(const StoredEntry& entry) {
    writer_.number(entry_format);
    writer_.list(entry.components, [&](const Component& component) {
      writer_.text(component.name);
      writer_.text(component.hash);
    });
    writer_.number(entry.nodes_recorded);
    writer_.integer(entry.eager_saved_bytes);
    writer_.byte(entry.reads_offsets);
    for (double seconds : {entry.trace_seconds, entry.forward_seconds, entry.backward_seconds})
      writer_.real(seconds);
    forward(entry.first);
    const PackedBackwards packed =
        entry.first.packed.bytes.empty() ? EntryWriter().pack(entry.first) : entry.first.packed;
    writer_.list(packed.artifacts, [&](const std::string& name) { artifact(name); });
    writer_.text(packed.bytes);
    writer_.text(EntryWriter().texts(entry));
    return writer_.take();
  }

 private:
  /// What nobody needs who calls the function.
  std::string texts(const StoredEntry& entry) {
    for (const Component& component : entry.components) writer_.text(component.text);
    for (const std::string* text :
         {&entry.contract, &entry.options, &entry.backend, &entry.backend_version, &entry.machine})
      writer_.text(*text);
    return pack_bytes(writer_.take());
  }

  PackedBackwards pack(const StoredOrder& order) {
    if (order.halves.backward.empty() && order.backwards.empty() && order.above.empty()) return {};
    backwards(order);
    std::vector<std::string> artifacts = artifacts_of(order);
    if (!order.artifact.empty()) artifacts.erase(artifacts.begin());
    return {pack_bytes(writer_.take()), std::move(artifacts)};
  }

  void order(const StoredOrder& order) {
    forward(order);
    backwards(order);
  }

  void forward(const StoredOrder& order) {
    writer_.text(order.joint.bytes);
    writer_.text(encode_graph(without_unused_metas(order.halves.forward)));
    writer_.list(order.halves.saved, [&](Value v) { writer_.number(uint64_t(v.id)); });
    sizes(order.marked);
    artifact(order.artifact);
    writer_.number(order.returned);
    variant(order.expected);
    writer_.byte(order.has_expected);
    variant(order.variant);
    sizes(order.taken);
    positions(order.gradients);
    sizes(order.differentiable);
  }

  void backwards(const StoredOrder& order) {
    const std::string backward = encode_graph(without_unused_metas(order.halves.backward));
    writer_.text(backward);
    writer_.list(order.backwards, [&](const StoredBackward& code) { this->backward(code, backward); });
    writer_.list(order.above, [&](const StoredOrder& next) { this->order(next); });
  }

  /// The expected backward is one of the halves, and not written twice.
  void backward(const StoredBackward& code, const std::string& of_halves) {
    variant(code.variant);
    sizes(code.saved);
    positions(code.gradients);
    const std::string graph = code.graph ? encode_graph(without_unused_metas(*code.graph)) : of_halves;
    writer_.text(graph == of_halves ? "" : graph);
    artifact(code.artifact);
  }

  void variant(const BackwardVariant& variant) {
    writer_.list(variant.tangents, [&](const std::optional<Tangent>& tangent) {
      writer_.byte(tangent.has_value());
      if (!tangent) return;
      write_meta(writer_, *tangent);
      writer_.byte(tangent->zero);
      writer_.byte(tangent->undefined);
    });
    writer_.list(variant.wanted, [&](bool wanted) { writer_.byte(wanted); });
  }

  void sizes(const std::vector<size_t>& sizes) {
    writer_.list(sizes, [&](size_t size) { writer_.number(size); });
  }
  void positions(const std::vector<int64_t>& positions) {
    writer_.list(positions, [&](int64_t position) { writer_.integer(position); });
  }

  /// No code is written as a hash of zeros.
  void artifact(const std::string& name) {
    if (name.empty()) return writer_.raw(std::string(artifact_bytes, '\0'));
    if (name.size() != 2 * artifact_bytes)
      throw Error("the artifact \"" + name + "\" is not named after a SHA-256 in hex");
    for (size_t i = 0; i < name.size(); i += 2) {
      const int high = hex_digit(name[i]), low = hex_digit(name[i + 1]);
      if (high < 0 || low < 0)
        throw Error("the artifact \"" + name + "\" is not named after a SHA-256 in lower-case hex");
      writer_.byte(uint8_t(high << 4 | low));
    }
  }

  ByteWriter writer_;
};

}  // namespace

PackedJoint pack(const Joint& joint) {
  ByteWriter writer;
  writer.number(joint.primals);
  writer.number(joint.forward_outputs);
  writer.text(encode_graph(joint.graph));
  return {pack_bytes(writer.take())};
}

std::vector<std::string> artifacts_of(const StoredOrder& order) {
  std::vector<std::string> names = order.packed.artifacts;
  auto add = [&](const std::string& name) {
    if (!name.empty()) names.push_back(name);
  };
  add(order.artifact);
  for (const StoredBackward& backward : order.backwards) add(backward.artifact);
  for (const StoredOrder& above : order.above)
    for (const std::string& name : artifacts_of(above)) add(name);
  return names;
}

std::string encode(const StoredEntry& entry) { return EntryWriter().write(entry); }

}  // namespace tandem::cache
