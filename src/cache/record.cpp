#include "cache/record.h"

#include <tandem/error.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/bytes.h"
#include "graph/constant_bytes.h"
#include "graph/graph_bytes.h"

namespace tandem::cache {
namespace {

constexpr uint64_t format = 1;
constexpr size_t highest_order = 16, artifact_bytes = 32;

class EntryWriter {
 public:
  std::string write(const StoredEntry& entry) {
    writer_.number(format);
    writer_.list(entry.components, [&](const Component& component) {
      for (const std::string* text : {&component.name, &component.hash, &component.text}) writer_.text(*text);
    });
    for (const std::string* text :
         {&entry.contract, &entry.options, &entry.backend, &entry.backend_version, &entry.machine})
      writer_.text(*text);
    writer_.number(entry.nodes_recorded);
    writer_.integer(entry.eager_saved_bytes);
    writer_.byte(entry.reads_offsets);
    for (double seconds : {entry.trace_seconds, entry.forward_seconds, entry.backward_seconds})
      writer_.real(seconds);
    order(entry.first);
    return writer_.take();
  }

 private:
  void order(const StoredOrder& order) {
    writer_.text(order.joint.bytes);
    writer_.text(encode_graph(order.halves.forward));
    const std::string backward = encode_graph(order.halves.backward);
    writer_.text(backward);
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
    writer_.list(order.backwards, [&](const StoredBackward& code) { this->backward(code, backward); });
    writer_.list(order.above, [&](const StoredOrder& next) { this->order(next); });
  }

  /// The expected backward is one of the halves, and not written twice.
  void backward(const StoredBackward& code, const std::string& of_halves) {
    variant(code.variant);
    sizes(code.saved);
    positions(code.gradients);
    const std::string graph = code.graph ? encode_graph(*code.graph) : of_halves;
    writer_.text(graph == of_halves ? "" : graph);
    artifact(code.artifact);
  }

  void variant(const BackwardVariant& variant) {
    writer_.list(variant.tangents, [&](const std::optional<TensorMeta>& tangent) {
      writer_.byte(tangent.has_value());
      if (tangent) write_meta(writer_, *tangent);
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

size_t arriving(const BackwardVariant& variant) {
  return size_t(std::count_if(variant.tangents.begin(), variant.tangents.end(),
                              [](const auto& tangent) { return tangent.has_value(); }));
}

bool same_shape(const BackwardVariant& a, const BackwardVariant& b) {
  return a.tangents.size() == b.tangents.size() && a.wanted.size() == b.wanted.size();
}

class EntryReader {
 public:
  explicit EntryReader(std::string_view bytes) : reader_(bytes) {}

  StoredEntry read() {
    if (reader_.number() != format)
      reader_.refuse("it is written in another format than " + std::to_string(format));
    StoredEntry entry;
    reader_.list(3, [&] {
      Component& component = entry.components.emplace_back();
      for (std::string* text : {&component.name, &component.hash, &component.text}) *text = reader_.text();
    });
    for (std::string* text :
         {&entry.contract, &entry.options, &entry.backend, &entry.backend_version, &entry.machine})
      *text = reader_.text();
    entry.nodes_recorded = reader_.number();
    entry.eager_saved_bytes = reader_.integer();
    entry.reads_offsets = reader_.flag();
    for (double* seconds : {&entry.trace_seconds, &entry.forward_seconds, &entry.backward_seconds})
      *seconds = duration();
    entry.first = order(1, nullptr);
    reader_.expect_end();
    return entry;
  }

 private:
  static constexpr size_t least_order = 59, least_backward = 37;

  double duration() {
    const double seconds = reader_.real();
    if (!(seconds >= 0) || !std::isfinite(seconds)) reader_.refuse("a duration is no number of seconds");
    return seconds;
  }

  StoredOrder order(size_t number, const StoredOrder* below) {
    if (number > highest_order)
      reader_.refuse("it holds derivatives of a higher order than " + std::to_string(highest_order));
    StoredOrder order;
    order.joint.bytes = reader_.text();
    order.halves.forward = decode_graph(reader_.text());
    order.halves.backward = decode_graph(reader_.text());
    reader_.list(1, [&] {
      order.halves.saved.push_back(
          Value{int32_t(reader_.number_below(order.halves.forward.value_count(), "value"))});
    });
    order.marked = positions_below(order.halves.saved.size(), "saved value");
    order.artifact = artifact();
    order.returned = reader_.number();
    order.expected = variant();
    order.has_expected = reader_.flag();
    check_forward(order);
    order.variant = variant();
    order.taken = positions_below(below ? below->halves.saved.size() : 0, "saved value");
    order.gradients = results(order.variant, order.halves.forward, order.returned);
    order.differentiable = positions_below(order.returned, "result");
    check_call(order, below);
    bool of_halves = false;
    reader_.list(least_backward, [&] { order.backwards.push_back(backward(order, of_halves)); });
    reader_.list(least_order, [&] { order.above.push_back(this->order(number + 1, &order)); });
    return order;
  }

  void check_forward(const StoredOrder& order) const {
    const auto& outputs = order.halves.forward.outputs();
    const size_t saved = order.halves.saved.size();
    if (order.returned > outputs.size() || outputs.size() - order.returned != saved)
      reader_.refuse("a forward with " + std::to_string(outputs.size()) + " results returns " +
                     std::to_string(order.returned) + " and saves " + std::to_string(saved));
    if (std::find(outputs.begin() + int64_t(order.returned), outputs.end(), Value{}) != outputs.end())
      reader_.refuse("a forward saves a value that is not there");
    if (order.has_expected && !order.halves.backward.empty() &&
        order.halves.backward.inputs().size() != saved + arriving(order.expected))
      reader_.refuse("a backward takes another number of tensors than are saved and arrive");
  }

  void check_call(const StoredOrder& order, const StoredOrder* below) const {
    for (size_t i : order.differentiable)
      if (!order.halves.forward.outputs()[i]) reader_.refuse("a result that is not there has a history");
    if (!below) return;
    if (!same_shape(order.variant, below->expected))
      reader_.refuse("a gradient is taken of other outputs or inputs than the order below has");
    check_inputs(order.halves.forward, order.taken, order.variant);
  }

  void check_inputs(const Graph& graph, const std::vector<size_t>& saved,
                    const BackwardVariant& variant) const {
    if (graph.inputs().size() != saved.size() + arriving(variant))
      reader_.refuse("a backward takes another number of tensors than it is given");
  }

  StoredBackward backward(const StoredOrder& order, bool& of_halves) {
    StoredBackward code;
    code.variant = variant();
    if (!same_shape(code.variant, order.expected))
      reader_.refuse("a backward is of other outputs or inputs than the forward has");
    code.saved = positions_below(order.halves.saved.size(), "saved value");
    const std::vector<int64_t> gradients = integers();
    if (const std::string_view graph = reader_.text(); !graph.empty())
      code.graph = decode_graph(graph);
    else if (std::exchange(of_halves, true))
      reader_.refuse("two backwards have the graph of the one that was expected");
    const Graph& made = code.graph_in(order.halves);
    code.gradients = checked(gradients, code.variant, made, made.outputs().size());
    check_inputs(made, code.saved, code.variant);
    code.artifact = artifact();
    return code;
  }

  BackwardVariant variant() {
    BackwardVariant variant;
    reader_.list(1, [&] {
      variant.tangents.push_back(reader_.flag() ? std::optional(read_meta(reader_)) : std::nullopt);
    });
    reader_.list(1, [&] { variant.wanted.push_back(reader_.flag()); });
    return variant;
  }

  std::vector<size_t> positions_below(size_t limit, const char* what) {
    std::vector<size_t> positions;
    reader_.list(1, [&] { positions.push_back(reader_.number_below(limit, what)); });
    return positions;
  }

  std::vector<int64_t> integers() {
    std::vector<int64_t> integers;
    reader_.list(1, [&] { integers.push_back(reader_.integer()); });
    return integers;
  }

  std::vector<int64_t> results(const BackwardVariant& variant, const Graph& graph, size_t count) {
    return checked(integers(), variant, graph, count);
  }

  /// One gradient for each input that wants one, or none where the graph has none.
  std::vector<int64_t> checked(std::vector<int64_t> gradients, const BackwardVariant& variant,
                               const Graph& graph, size_t results) const {
    if (gradients.size() != variant.wanted.size())
      reader_.refuse("there are gradients for another number of inputs than want one");
    for (int64_t position : gradients)
      if (position != -1 &&
          (position < 0 || size_t(position) >= results || !graph.outputs()[size_t(position)]))
        reader_.refuse("a gradient is a result that is not there");
    return gradients;
  }

  std::string artifact() {
    const std::string_view name = reader_.raw(artifact_bytes);
    return name == std::string(artifact_bytes, '\0') ? "" : to_hex(name);
  }

  ByteReader reader_;
};

}  // namespace

PackedJoint pack(const Joint& joint) {
  ByteWriter writer;
  writer.number(joint.primals);
  writer.number(joint.forward_outputs);
  writer.text(encode_graph(joint.graph));
  return {writer.take()};
}

Joint unpack(const PackedJoint& packed) {
  ByteReader reader(packed.bytes);
  Joint joint;
  joint.primals = reader.number();
  joint.forward_outputs = reader.number();
  joint.graph = decode_graph(reader.text());
  if (joint.primals > joint.graph.inputs().size() || joint.forward_outputs > joint.graph.outputs().size())
    reader.refuse("a joint graph has fewer inputs or outputs than its forward");
  reader.expect_end();
  return joint;
}

std::string encode(const StoredEntry& entry) { return EntryWriter().write(entry); }

StoredEntry decode(std::string_view bytes) { return EntryReader(bytes).read(); }

}  // namespace tandem::cache
