#include "graph/uses.h"

#include "passes/graphs.h"

#include <gtest/gtest.h>

namespace tandem {

TEST(Uses, SayWhoMakesAndWhoReads) {
  GraphWriter w;
  Value x = w.input({3}), unread = w.input({3});
  Value sine = w.call("aten::sin", {x}), product = w.call("aten::mul.Tensor", {sine, sine}),
        alone = w.call("aten::cos", {x});
  w.graph.set_outputs({product, sine, Value()});
  auto of = [](const std::vector<int32_t>& numbers, std::initializer_list<Value> values) {
    std::vector<int32_t> found;
    for (Value v : values) found.push_back(numbers[size_t(v.id)]);
    return found;
  };
  const auto all = {x, unread, sine, product, alone};
  EXPECT_EQ(of(makers(w.graph), all), (std::vector<int32_t>{no_node, no_node, 0, 1, 2}));
  EXPECT_EQ(of(read_counts(w.graph), all), (std::vector<int32_t>{2, 0, 3, 1, 0}));
  EXPECT_EQ(of(last_reads(w.graph), all), (std::vector<int32_t>{2, no_node, 3, 3, no_node}));
  EXPECT_EQ(storages_of_inputs(w.graph),
            (std::unordered_set<int32_t>{w.graph.meta(x).storage, w.graph.meta(unread).storage}));
}

}  // namespace tandem
