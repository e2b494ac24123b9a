#include "trace/known_answers.h"

#include <map>

#include "graph/uses.h"

namespace tandem {
namespace {

/// What a comparison of a number from 0 to 1 says where the other lies below, or above.
struct Outside {
  bool of_lower, of_higher;
};

const std::map<std::string, Outside> comparisons = {{"aten::lt", {false, true}},
                                                    {"aten::le", {false, true}},
                                                    {"aten::gt", {true, false}},
                                                    {"aten::ge", {true, false}}};

bool lies_between_0_and_1(const Graph& record, Value value) {
  const Node* maker = maker_of(record, value);
  return maker && (maker->op.operator_name().name == "aten::rand" ||
                   maker->op.operator_name().name == "aten::rand_like");
}

}  // namespace

std::optional<bool> known_answer(const Graph& record, Value asked) {
  const Node* node = maker_of(record, asked);
  if (!node || node->op.operator_name().overload_name != "Scalar") return std::nullopt;
  const auto comparison = comparisons.find(node->op.operator_name().name);
  if (comparison == comparisons.end() || !lies_between_0_and_1(record, std::get<Value>(node->arguments[0])))
    return std::nullopt;
  const auto* constant = std::get_if<c10::IValue>(&node->arguments[1]);
  if (!constant) return std::nullopt;
  const double other = constant->toScalar().toDouble();
  // Zero itself may be drawn, and is not below zero.
  const bool counts_equal = comparison->first == "aten::le" || comparison->first == "aten::gt";
  if (other < 0 || (other == 0 && !counts_equal)) return comparison->second.of_lower;
  if (other > 1) return comparison->second.of_higher;
  return std::nullopt;
}

}  // namespace tandem
