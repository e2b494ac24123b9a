#include "partition/computation_keys.h"

#include "partition/extract.h"
#include "passes/graphs.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <tandem/error.h>

#include <set>

namespace tandem {
namespace {

/// The one value that `call` makes of the inputs a, b and c.
template <class Call>
uint64_t key_in(ComputationKeys& keys, const Call& call) {
  GraphWriter w;
  const Value a = w.input({2}), b = w.input({2}), c = w.input({2});
  const Value made = call(w, a, b, c);
  w.graph.set_outputs({made});
  return keys.of({w.graph, 3, 1})[size_t(made.id)];
}

TEST(ComputationKeys, EqualCallsOfEqualArgumentsHaveOne) {
  ComputationKeys keys(false);
  auto product = [](GraphWriter& w, Value a, Value b, Value) {
    return w.call("aten::mul.Tensor", {w.call("aten::add.Tensor", {a, b, number(int64_t(1))}), a});
  };
  auto later = [&](GraphWriter& w, Value a, Value b, Value c) {
    w.call("aten::neg", {c});
    return product(w, a, b, c);
  };
  EXPECT_EQ(key_in(keys, product), key_in(keys, later));
}

TEST(ComputationKeys, WhatTellsCallsApartDoesSoExactly) {
  ComputationKeys keys(false);
  std::vector<uint64_t> found;
  auto add = [&](const char* op, const std::vector<Operand>& more, bool swapped = false) {
    found.push_back(key_in(keys, [&](GraphWriter& w, Value a, Value b, Value) {
      std::vector<Operand> arguments{swapped ? b : a};
      arguments.insert(arguments.end(), more.begin(), more.end());
      return w.call(op, arguments);
    }));
  };
  for (double factor : {0.0, -0.0, 1.0, std::nextafter(1.0, 2.0)}) add("aten::mul.Scalar", {number(factor)});
  add("aten::mul.Scalar", {number(int64_t(1))});
  add("aten::neg", {});
  add("aten::neg", {}, /*swapped=*/true);
  const at::Generator generators[] = {at::detail::createCPUGenerator(1), at::detail::createCPUGenerator(1)};
  for (const at::Generator& generator : generators) add("aten::bernoulli", {c10::IValue(generator)});
  for (double held : {1.0, 2.0})
    found.push_back(key_in(keys, [&](GraphWriter& w, Value a, Value, Value) {
      return w.call("aten::mul.Tensor", {a, w.constant(at::full({2}, held, at::kDouble))});
    }));
  EXPECT_EQ(std::set<uint64_t>(found.begin(), found.end()).size(), found.size());
}

/// A call of two lists that together hold a, b, c and a, of which the first has `first`.
Node call_of_lists(GraphWriter& w, size_t first) {
  std::vector<Value> all = w.graph.inputs();
  all.push_back(all[0]);
  const auto cut = all.begin() + int64_t(first);
  const std::vector<Value> front(all.begin(), cut), back(cut, all.end());
  const std::vector<Value> made{w.graph.add_value(w.meta({2}))};
  const c10::OperatorHandle op = find_op("aten::_foreach_add.List");
  Node node{op, {front, back, number(int64_t(1))}, {made}, {}, Phase::Forward, {}};
  w.graph.add_node(node);
  return node;
}

/// Its gradient is the tangent times what the call of lists makes.
Joint product_with_lists(size_t first) {
  GraphWriter w;
  for (int i = 0; i < 3; ++i) w.input({2});
  const Value made = std::get<std::vector<Value>>(call_of_lists(w, first).results[0])[0];
  const Value tangent = w.input({2});
  w.phase = Phase::Backward;
  const Value gradient = w.call("aten::mul.Tensor", {tangent, made});
  w.graph.set_outputs({made, gradient});
  return {w.graph, 3, 1};
}

TEST(ComputationKeys, ASavedValueThatIsComputedOtherwiseIsNotTakenForAnother) {
  const Joint kept = product_with_lists(2), same = product_with_lists(2), other = product_with_lists(1);
  const std::vector<Value> saved{kept.graph.outputs()[0]};
  const std::vector<size_t> none;
  const Kept left{kept, saved, kept.graph, none};
  EXPECT_EQ(extract_backward(same, left).saved, std::vector<size_t>{0});
  EXPECT_THROW(extract_backward(other, left), UnsupportedError) << "nothing that it reads was kept";
}

}  // namespace
}  // namespace tandem
