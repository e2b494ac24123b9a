#include "partition/workspace.h"

#include <algorithm>
#include <unordered_map>

#include "graph/uses.h"
#include "ops/by_operator.h"

namespace tandem {
namespace {

using Workspace = int64_t (*)(const Graph&, const Node&);

int64_t bytes_of(const TensorMeta& meta) { return meta.numel() * int64_t(c10::elementSize(meta.dtype)); }

const TensorMeta* argument(const Graph& graph, const Node& node, size_t i) {
  const Value value = tensor_at(node, i);
  return value ? &graph.meta(value) : nullptr;
}

const TensorMeta* first_result(const Graph& graph, const Node& node) {
  const Value* value = node.results.empty() ? nullptr : std::get_if<Value>(&node.results[0]);
  return value && *value ? &graph.meta(*value) : nullptr;
}

bool is_channels_last(const TensorMeta& meta) {
  return meta.sizes.size() == 4 && meta.strides[1] == 1 && meta.sizes[1] > 1;
}

/// On CPUs weights are laid out anew for oneDNN, and so are images unless their channels come last.
int64_t of_convolution(const Graph& graph, const Node& node) {
  const TensorMeta *image = argument(graph, node, 0), *weight = argument(graph, node, 1),
                   *result = first_result(graph, node);
  if (!image || !weight || !result || !image->device.is_cpu()) return 0;
  if (is_channels_last(*image)) return bytes_of(*weight);
  return std::max(bytes_of(*weight) + bytes_of(*image), bytes_of(*result));
}

int64_t of_convolution_backward(const Graph& graph, const Node& node) {
  const TensorMeta *gradient = argument(graph, node, 0), *image = argument(graph, node, 1),
                   *weight = argument(graph, node, 2);
  if (!gradient || !image || !weight || !image->device.is_cpu()) return 0;
  if (is_channels_last(*image)) return 2 * bytes_of(*weight);
  return std::max(bytes_of(*weight), bytes_of(*gradient) + bytes_of(*image));
}

/// On GPUs the gradient of the queries is summed in float32.
int64_t of_attention_backward(const Graph& graph, const Node& node) {
  const TensorMeta* queries = argument(graph, node, 1);
  return queries && !queries->device.is_cpu() ? queries->numel() * int64_t(sizeof(float)) : 0;
}

/// On GPUs many blocks of threads share the sums of long columns, four to a thread, and libtorch gives each
/// thread of each block a place in memory for every group of sums. What it decides by the number of
/// processors is taken for a large GPU here.
int64_t of_sum(const Graph& graph, const Node& node) {
  constexpr int64_t sums_in_block = 128, rows_in_block = 4, resident_blocks = 16 * 128;
  constexpr int64_t fewest_rows = 16, most_rows = 256;  // of one thread
  const TensorMeta *read = argument(graph, node, 0), *made = first_result(graph, node);
  if (!read || !made || read->device.is_cpu() || made->numel() < sums_in_block) return 0;
  const bool are_columns = !read->sizes.empty() && !made->sizes.empty() && read->strides.back() == 1 &&
                           made->sizes.back() == read->sizes.back();
  if (!are_columns) return 0;
  auto divided = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t rows = read->numel() / made->numel() / rows_in_block;
  if (rows < most_rows) return 0;
  const int64_t by_grid = divided(resident_blocks, divided(made->numel(), sums_in_block));
  const int64_t blocks = std::max(std::min(by_grid, divided(rows, fewest_rows)), divided(rows, most_rows));
  return int64_t(sizeof(float)) * made->numel() * sums_in_block * blocks;
}

const std::unordered_map<std::string, Workspace> table{
    {"aten::convolution", of_convolution},
    {"aten::convolution_backward", of_convolution_backward},
    {"aten::_scaled_dot_product_cudnn_attention_backward", of_attention_backward},
    {"aten::_scaled_dot_product_flash_attention_backward", of_attention_backward},
    {"aten::_scaled_dot_product_efficient_attention_backward", of_attention_backward},
    {"aten::sum", of_sum},
};

}  // namespace

int64_t workspace_bytes(const Graph& graph, const Node& node) {
  static ByOperator<Workspace> known;
  const Workspace workspace = known.of(node.op, [](const c10::OperatorHandle& op) {
    const auto row = table.find(op.operator_name().name);
    return row == table.end() ? nullptr : row->second;
  });
  return workspace ? workspace(graph, node) : 0;
}

}  // namespace tandem
