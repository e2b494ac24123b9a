#include "partition/narrow_rows.h"

#include <algorithm>

#include "graph/uses.h"

namespace tandem {
namespace {

/// Operators whose places lie within one plane of their input: the last dimensions of the backward's second
/// argument.
struct PlacesRow {
  std::string_view backward, forward;
  size_t argument;  ///< of the backward: the places
  size_t dimensions;
};
constexpr PlacesRow places_table[] = {
    {"aten::max_pool2d_with_indices_backward", "aten::max_pool2d_with_indices", 7, 2},
    {"aten::max_pool3d_with_indices_backward", "aten::max_pool3d_with_indices", 7, 3},
    {"aten::adaptive_max_pool2d_backward", "aten::adaptive_max_pool2d", 2, 2},
    {"aten::adaptive_max_pool3d_backward", "aten::adaptive_max_pool3d", 2, 3},
};

/// Operators that read nothing of an argument but its dtype, sizes and strides.
struct GeometryRow {
  std::string_view op;
  size_t argument;
};
constexpr GeometryRow geometry_table[] = {
    {"aten::max_pool2d_with_indices_backward", 1},
    {"aten::max_pool3d_with_indices_backward", 1},
    {"aten::adaptive_max_pool2d_backward", 1},
    {"aten::adaptive_max_pool3d_backward", 1},
    {"aten::avg_pool2d_backward", 1},
    {"aten::avg_pool3d_backward", 1},
    {"aten::_adaptive_avg_pool2d_backward", 1},
    {"aten::_adaptive_avg_pool3d_backward", 1},
    {"aten::zeros_like", 0},
};

/// The smallest type that numbers below `end` have room in.
at::ScalarType type_for(int64_t end) {
  if (end <= int64_t(1) << 8) return at::kByte;
  if (end <= int64_t(1) << 15) return at::kShort;
  return end <= int64_t(1) << 31 ? at::kInt : at::kLong;
}

const std::string& name_of(const Node& node) { return node.op.operator_name().name; }

/// Kernels of other devices may read what libtorch's own do not.
bool is_on_known_device(const TensorMeta& meta) { return meta.device.is_cpu() || meta.device.is_cuda(); }

}  // namespace

bool is_zero(const Operand& operand) {
  const auto* constant = std::get_if<c10::IValue>(&operand);
  return constant && constant->isScalar() && constant->toScalar().toDouble() == 0;
}

bool reads_geometry_alone(const Graph& graph, const Node& reader, size_t argument) {
  const Value value = tensor_at(reader, argument);
  return value && is_on_known_device(graph.meta(value)) &&
         std::any_of(std::begin(geometry_table), std::end(geometry_table), [&](const GeometryRow& row) {
           return row.argument == argument && row.op == name_of(reader);
         });
}

bool reads_sign_alone(const Graph& graph, const Node& reader, size_t argument) {
  return argument == 1 && name_of(reader) == "aten::threshold_backward" && is_zero(reader.arguments[2]) &&
         is_choice_by_sign(graph, tensor_at(reader, 1), tensor_at(reader, 0));
}

bool is_choice_by_sign(const Graph& graph, Value value, Value gradient) {
  const TensorMeta& meta = graph.meta(value);
  const bool is_copied = meta.dtype == at::kFloat || meta.dtype == at::kDouble ||
                         (meta.device.is_cuda() && (meta.dtype == at::kHalf || meta.dtype == at::kBFloat16));
  return is_copied && is_on_known_device(meta) && graph.meta(gradient).dtype == meta.dtype;
}

at::ScalarType type_of_places(const Graph& graph, const Node& reader, size_t argument) {
  for (const PlacesRow& row : places_table) {
    if (row.argument != argument || row.backward != name_of(reader)) continue;
    const Dims& sizes = graph.meta(tensor_at(reader, 1)).sizes;
    if (sizes.size() < row.dimensions) break;
    int64_t end = 1;
    for (size_t d = sizes.size() - row.dimensions; d < sizes.size(); ++d) end *= sizes[d];
    return type_for(end);
  }
  return at::kLong;
}

bool makes_places_for(const Node& maker, const Node& reader) {
  return std::any_of(std::begin(places_table), std::end(places_table), [&](const PlacesRow& row) {
    return row.backward == name_of(reader) && row.forward == name_of(maker) &&
           tensor_at(maker, 0) == tensor_at(reader, 1);
  });
}

}  // namespace tandem
