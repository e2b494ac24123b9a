// Bytes to an entry.
#include <tandem/error.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cache/compression.h"
#include "cache/record.h"
#include "cache/record_format.h"
#include "graph/bytes.h"
#include "graph/constant_bytes.h"
#include "graph/graph_bytes.h"

namespace tandem::cache {
namespace {

constexpr size_t highest_order = 16;

size_t arriving(const BackwardVariant& variant) {
  return size_t(std::count_if(variant.tangents.begin(), variant.tangents.end(),
                              [](const auto& tangent) { return tangent && !tangent->undefined; }));
}

bool same_shape(const BackwardVariant& a, const BackwardVariant& b) {
  return a.tangents.size() == b.tangents.size() && a.wanted.size() == b.wanted.size();
}

void put(Backwards read, StoredOrder& into) {
  into.halves.backward = std::move(read.half);
  into.backwards = std::move(read.backwards);
  into.above = std::move(read.above);
}

class EntryReader {
 public:
  explicit EntryReader(std::string_view bytes) : reader_(bytes) {}

  /// With what a call needs, and the place of the texts.
  StoredEntry read(std::string_view& texts) {
    if (reader_.number() != entry_format)
      reader_.refuse("it is written in another format than " + std::to_string(entry_format));
    StoredEntry entry;
    reader_.list(2, [&] {
      Component& component = entry.components.emplace_back();
      component.name = reader_.text();
      component.hash = reader_.text();
    });
    entry.nodes_recorded = reader_.number();
    entry.eager_saved_bytes = reader_.integer();
    entry.reads_offsets = reader_.flag();
    for (double* seconds : {&entry.trace_seconds, &entry.forward_seconds, &entry.backward_seconds})
      *seconds = duration();
    entry.first = forward(nullptr);
    reader_.list(artifact_bytes, [&] {
      entry.first.packed.artifacts.push_back(artifact());
      if (entry.first.packed.artifacts.back().empty()) reader_.refuse("it names code without a name");
    });
    entry.first.packed.bytes = reader_.text();
    texts = reader_.text();
    reader_.expect_end();
    return entry;
  }

  void read_texts(StoredEntry& entry) {
    for (Component& component : entry.components) component.text = reader_.text();
    for (std::string* text :
         {&entry.contract, &entry.options, &entry.backend, &entry.backend_version, &entry.machine})
      *text = reader_.text();
    reader_.expect_end();
  }

  Backwards read_backwards(const OrderRecord& order) {
    Backwards read = backwards(order, 1);
    reader_.expect_end();
    return read;
  }

 private:
  static constexpr size_t least_order = 59, least_backward = 37;

  double duration() {
    const double seconds = reader_.real();
    if (!(seconds >= 0) || !std::isfinite(seconds)) reader_.refuse("a duration is no number of seconds");
    return seconds;
  }

  StoredOrder order(size_t number, const OrderRecord& below) {
    if (number > highest_order)
      reader_.refuse("it holds derivatives of a higher order than " + std::to_string(highest_order));
    StoredOrder order = forward(&below);
    put(backwards(order, number), order);
    return order;
  }

  StoredOrder forward(const OrderRecord* below) {
    StoredOrder order;
    order.joint.bytes = reader_.text();
    order.halves.forward = decode_graph(reader_.text());
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
    return order;
  }

  Backwards backwards(const OrderRecord& order, size_t number) {
    Backwards read;
    read.half = decode_graph(reader_.text());
    if (order.has_expected && !read.half.empty() &&
        read.half.inputs().size() != order.halves.saved.size() + arriving(order.expected))
      reader_.refuse("a backward takes another number of tensors than are saved and arrive");
    bool of_half = false;
    reader_.list(least_backward, [&] { read.backwards.push_back(backward(order, read.half, of_half)); });
    reader_.list(least_order, [&] { read.above.push_back(this->order(number + 1, order)); });
    return read;
  }

  void check_forward(const OrderRecord& order) const {
    const auto& outputs = order.halves.forward.outputs();
    const size_t saved = order.halves.saved.size();
    if (order.returned > outputs.size() || outputs.size() - order.returned != saved)
      reader_.refuse("a forward with " + std::to_string(outputs.size()) + " results returns " +
                     std::to_string(order.returned) + " and saves " + std::to_string(saved));
    if (std::find(outputs.begin() + int64_t(order.returned), outputs.end(), Value{}) != outputs.end())
      reader_.refuse("a forward saves a value that is not there");
  }

  void check_call(const OrderRecord& order, const OrderRecord* below) const {
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

  StoredBackward backward(const OrderRecord& order, const Graph& half, bool& of_half) {
    StoredBackward code;
    code.variant = variant();
    if (!same_shape(code.variant, order.expected))
      reader_.refuse("a backward is of other outputs or inputs than the forward has");
    code.saved = positions_below(order.halves.saved.size(), "saved value");
    const std::vector<int64_t> gradients = integers();
    if (const std::string_view graph = reader_.text(); !graph.empty())
      code.graph = decode_graph(graph);
    else if (std::exchange(of_half, true))
      reader_.refuse("two backwards have the graph of the one that was expected");
    const Graph& made = code.graph ? *code.graph : half;
    code.gradients = checked(gradients, code.variant, made, made.outputs().size());
    check_inputs(made, code.saved, code.variant);
    code.artifact = artifact();
    return code;
  }

  BackwardVariant variant() {
    BackwardVariant variant;
    reader_.list(1, [&] {
      std::optional<Tangent>& tangent = variant.tangents.emplace_back();
      if (!reader_.flag()) return;
      tangent = Tangent{read_meta(reader_)};
      tangent->zero = reader_.flag();
      tangent->undefined = reader_.flag();
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

Joint unpack(const PackedJoint& packed) {
  const std::string bytes = unpack_bytes(packed.bytes);
  ByteReader reader(bytes);
  Joint joint;
  joint.primals = reader.number();
  joint.forward_outputs = reader.number();
  joint.graph = decode_graph(reader.text());
  if (joint.primals > joint.graph.inputs().size() || joint.forward_outputs > joint.graph.outputs().size())
    reader.refuse("a joint graph has fewer inputs or outputs than its forward");
  reader.expect_end();
  return joint;
}

Backwards unpack(const PackedBackwards& packed, const OrderRecord& order) {
  return EntryReader(unpack_bytes(packed.bytes)).read_backwards(order);
}

void unpack_backwards(StoredOrder& first) {
  if (!first.packed.bytes.empty()) put(unpack(first.packed, first), first);
  first.packed = {};
}

StoredEntry decode(std::string_view bytes) {
  std::string_view texts;
  StoredEntry entry = EntryReader(bytes).read(texts);
  EntryReader(unpack_bytes(texts)).read_texts(entry);
  unpack_backwards(entry.first);
  return entry;
}

StoredEntry decode_for_call(std::string_view bytes) {
  std::string_view texts;
  return EntryReader(bytes).read(texts);
}

}  // namespace tandem::cache
