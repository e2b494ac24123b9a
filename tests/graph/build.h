/// Short words for building graphs by hand, and what it means that two of them are equal.
#pragma once

#include <gtest/gtest.h>
#include <tandem/error.h>
#include <tandem/graph.h>

#include "graph/vocabulary.h"

namespace tandem::test {

inline c10::OperatorHandle op(const std::string& full) {
  const size_t dot = full.find('.');
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      full.substr(0, dot).c_str(), dot == std::string::npos ? "" : full.substr(dot + 1).c_str());
}

inline TensorMeta dense(std::vector<int64_t> sizes, int32_t storage = -1, at::ScalarType dtype = at::kFloat) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.sizes = Dims(sizes.begin(), sizes.end());
  meta.strides = dense_strides(sizes);
  meta.storage = storage;
  return meta;
}

/// Appends a call with one result and gives that result.
inline Value call(Graph& graph, const std::string& name, std::vector<Operand> arguments, TensorMeta meta,
                  Phase phase = Phase::Forward) {
  Value result = graph.add_value(std::move(meta));
  graph.add_node(Node{op(name), std::move(arguments), {result}, {}, phase, {}});
  return result;
}

inline c10::IValue number(const at::Scalar& scalar) {
  at::Tensor tensor = at::scalar_tensor(scalar, at::TensorOptions().dtype(scalar.type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// x + 1 * y, relu of it, with names, a phase and a location.
inline Graph small_graph() {
  Graph graph;
  Value x = graph.add_input(dense({3, 4}, 0), "x"), y = graph.add_input(dense({3, 4}, 1));
  Value sum = call(graph, "aten::add.Tensor", {x, y, c10::IValue(1)}, dense({3, 4}, 2));
  Value out = call(graph, "aten::relu", {sum}, dense({3, 4}, 3), Phase::Backward);
  graph.nodes().back().location = "model.cpp:3";
  graph.set_outputs({out, Value{}});
  return graph;
}

inline bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

inline bool same(const c10::IValue& a, const c10::IValue& b) {
  if (a.isTensor() && b.isTensor()) {
    const at::Tensor &s = a.toTensor(), &t = b.toTensor();
    if (!s.defined() || !t.defined()) return s.defined() == t.defined();
    return s.scalar_type() == t.scalar_type() && s.sizes() == t.sizes() && s.strides() == t.strides() &&
           s.is_conj() == t.is_conj() && s.is_neg() == t.is_neg() &&
           s.unsafeGetTensorImpl()->is_wrapped_number() == t.unsafeGetTensorImpl()->is_wrapped_number() &&
           (s.is_complex() ? at::equal(at::view_as_real(s.resolve_conj()), at::view_as_real(t.resolve_conj()))
                           : at::allclose(s, t, 0, 0, true));
  }
  if (a.isDouble() && b.isDouble()) return same_bits(a.toDouble(), b.toDouble());
  if (a.isComplexDouble() && b.isComplexDouble())
    return same_bits(a.toComplexDouble().real(), b.toComplexDouble().real()) &&
           same_bits(a.toComplexDouble().imag(), b.toComplexDouble().imag());
  if (a.isList() && b.isList()) {
    if (a.tagKind() != b.tagKind() || a.toListRef().size() != b.toListRef().size()) return false;
    for (size_t i = 0; i < a.toListRef().size(); ++i)
      if (!same(a.toListRef()[i], b.toListRef()[i])) return false;
    return true;
  }
  return a.tagKind() == b.tagKind() && a == b;
}

inline bool same(const Operand& a, const Operand& b) {
  if (a.index() != b.index()) return false;
  if (auto* constant = std::get_if<c10::IValue>(&a)) return same(*constant, std::get<c10::IValue>(b));
  if (auto* value = std::get_if<Value>(&a)) return *value == std::get<Value>(b);
  return std::get<std::vector<Value>>(a) == std::get<std::vector<Value>>(b);
}

inline void expect_same(const std::vector<Operand>& a, const std::vector<Operand>& b,
                        const std::string& where) {
  ASSERT_EQ(a.size(), b.size()) << where;
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same(a[i], b[i])) << where << ", operand " << i;
}

inline void expect_equal(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.inputs(), b.inputs());
  EXPECT_EQ(a.outputs(), b.outputs());
  ASSERT_EQ(a.value_count(), b.value_count());
  for (size_t id = 0; id < a.value_count(); ++id) {
    Value v{int32_t(id)};
    EXPECT_EQ(a.meta(v), b.meta(v)) << "value " << id;
    EXPECT_LT(b.meta(v).storage, b.fresh_storage()) << "value " << id;
    EXPECT_EQ(a.name(v), b.name(v));
  }
  ASSERT_EQ(a.constants().size(), b.constants().size());
  for (size_t i = 0; i < a.constants().size(); ++i) {
    EXPECT_EQ(a.constants()[i].first, b.constants()[i].first);
    EXPECT_TRUE(same(c10::IValue(a.constants()[i].second), c10::IValue(b.constants()[i].second)))
        << "constant " << i;
  }
  ASSERT_EQ(a.nodes().size(), b.nodes().size());
  for (size_t i = 0; i < a.nodes().size(); ++i) {
    const Node &m = a.nodes()[i], &n = b.nodes()[i];
    const std::string where = to_string(a, m);
    EXPECT_EQ(m.op, n.op) << where;
    expect_same(m.arguments, n.arguments, "arguments of " + where);
    expect_same(m.results, n.results, "results of " + where);
    EXPECT_EQ(m.writes, n.writes) << where;
    EXPECT_EQ(m.phase, n.phase) << where;
    EXPECT_EQ(m.location, n.location) << where;
  }
}

/// What an Error says, or an empty string when nothing is thrown.
template <class Act>
std::string complaint_of(Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace tandem::test
