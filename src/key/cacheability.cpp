#include "key/cacheability.h"

#include "ops/facts.h"
#include "ops/versions.h"

namespace tandem {
namespace {

std::string too_much_data(int64_t bytes) {
  if (bytes <= most_constant_bytes) return {};
  return "it makes " + std::to_string(bytes) + " bytes of data inside the function, and at most " +
         std::to_string(most_constant_bytes) + " are kept; capture them as a tensor";
}

bool holds_generator(const Node& node) {
  return std::any_of(node.arguments.begin(), node.arguments.end(), [](const Operand& operand) {
    auto* constant = std::get_if<c10::IValue>(&operand);
    return constant && constant->isGenerator() && constant->toGenerator().defined();
  });
}

}  // namespace

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const auto& [value, data] : graph.constants())
    if (data.defined()) bytes += int64_t(data.nbytes());
  return bytes;
}

std::string find_obstacle(const Graph& graph) {
  if (std::string data = too_much_data(constant_bytes(graph)); !data.empty()) return data;
  const auto versions = library_versions();
  for (const Node& node : graph.nodes()) {
    const std::string library = library_of(node.op.operator_name().name);
    if (!belongs_to_libtorch(library) && !versions.count(library))
      return "the operator " + full_name(node.op) +
             " is of a library without a version; give it one with register_library(\"" + library +
             "\", \"...\")";
    if (holds_generator(node))
      return full_name(node.op) + " draws from a generator of its own, which no other process has";
  }
  return {};
}

}  // namespace tandem
