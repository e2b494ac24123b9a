/// One call, as libtorch answers it and as the loop table does.
#pragma once

#include "graph/geometry.h"
#include "ops/facts.h"
#include "passes/graphs.h"
#include "passes/loop_table.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tandem {

/// An argument that says the dtype of the tensors.
struct TheirDtype {};
using CallArgument = std::variant<at::Tensor, c10::IValue, TheirDtype>;

struct LoopCall {
  const char* op;
  std::vector<CallArgument> arguments;  ///< tensors of double; those left out take their defaults
  std::vector<size_t> written = {};     ///< arguments that it writes
};

/// Whether one of the two has elements that are NaN, or infinite, where the other has not.
inline bool differ_beyond_numbers(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor finite = a.isfinite();
  return !at::equal(finite, b.isfinite()) ||
         !at::allclose(a.masked_select(~finite), b.masked_select(~finite), 0, 0, /*equal_nan=*/true);
}

/// How far apart finite elements are at most.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor apart = (a.to(at::kDouble) - b.to(at::kDouble)).abs();
  apart = apart.masked_select(apart.isfinite());
  return apart.numel() ? apart.max().item<double>() : 0;
}
inline double largest_finite(const at::Tensor& a) { return distance(a, at::zeros_like(a)); }

/// One call on tensors of one dtype.
class OneCall {
 public:
  OneCall(const LoopCall& call, at::ScalarType dtype) : op_(find_op(call.op)), written_(call.written) {
    const auto& declared = op_.schema().arguments();
    for (size_t i = 0; i < declared.size(); ++i)
      stack_.push_back(i < call.arguments.size() ? in_dtype(call.arguments[i], dtype)
                                                 : declared[i].default_value().value_or(c10::IValue()));
    eager_ = run_eager();
  }

  /// What libtorch returns, then what it leaves in the arguments that it writes; undefined ones left out.
  const Tensors& eager() const { return eager_; }

  Graph decomposed() const { return decompose(recorded(), loop_decompositions()); }

  Tensors run(const Graph& graph) const {
    Tensors inputs;
    for (const c10::IValue& value : stack_)
      if (value.isTensor()) inputs.push_back(value.toTensor());
    return graph.run(std::move(inputs));
  }

  bool is_contiguous() const {
    return std::all_of(stack_.begin(), stack_.end(), [](const c10::IValue& value) {
      return !value.isTensor() || value.toTensor().is_contiguous();
    });
  }

 private:
  static c10::IValue in_dtype(const CallArgument& argument, at::ScalarType dtype) {
    if (std::holds_alternative<TheirDtype>(argument)) return int64_t(dtype);
    if (auto* tensor = std::get_if<at::Tensor>(&argument))
      return tensor->scalar_type() == at::kDouble ? tensor->to(dtype) : *tensor;
    return std::get<c10::IValue>(argument);
  }

  Tensors run_eager() {
    std::vector<c10::IValue> stack = stack_;
    for (size_t i : written_) stack[i] = stack[i].toTensor().clone();
    Tensors after;
    for (size_t i : written_) after.push_back(stack[i].toTensor());
    op_.callBoxed(stack);
    Tensors made;
    for (const c10::IValue& value : stack) {
      is_made_.push_back(value.isTensor() && value.toTensor().defined());
      if (is_made_.back()) made.push_back(value.toTensor());
    }
    made.insert(made.end(), after.begin(), after.end());
    return made;
  }

  /// The call with results described as libtorch has made them.
  Graph recorded() const {
    GraphWriter w;
    auto describe = [&](const at::Tensor& t) {
      return w.meta(Dims(t.sizes().begin(), t.sizes().end()), t.scalar_type(),
                    Dims(t.strides().begin(), t.strides().end()));
    };
    Node node{op_, {}, {}};
    for (const c10::IValue& value : stack_)
      node.arguments.push_back(value.isTensor() ? Operand(w.graph.add_input(describe(value.toTensor())))
                                                : Operand(value));
    std::vector<Value> outputs;
    auto next = eager_.begin();
    auto add = [&] { return outputs.emplace_back(w.graph.add_value(describe(*next++))); };
    for (bool made : is_made_) node.results.push_back(made ? add() : Value());
    for (size_t i : written_) {
      Value before = std::get<Value>(node.arguments[i]);
      node.writes.emplace_back(before, add());
    }
    w.graph.add_node(node);
    w.graph.set_outputs(outputs);
    return w.graph;
  }

  c10::OperatorHandle op_;
  std::vector<size_t> written_;
  std::vector<c10::IValue> stack_;
  std::vector<bool> is_made_;
  Tensors eager_;
};

inline bool has_operator(const Graph& graph, const std::string& op) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) { return full_name(node.op) == op; });
}

/// The call is replaced, and what replaces it gives tensors of the same kind.
inline Tensors expect_replaced(const LoopCall& call, const OneCall& one) {
  Graph graph = one.decomposed();
  graph.verify();
  EXPECT_FALSE(has_operator(graph, call.op));
  if (one.is_contiguous()) {
    EXPECT_FALSE(has_operator(graph, "aten::copy"));
  }
  Tensors got = one.run(graph);
  EXPECT_EQ(got.size(), one.eager().size());
  got.resize(one.eager().size());
  for (size_t i = 0; i < got.size(); ++i) {
    const at::Tensor& expected = one.eager()[i];
    EXPECT_EQ(got[i].scalar_type(), expected.scalar_type());
    EXPECT_EQ(got[i].sizes(), expected.sizes());
    if (got[i].sizes() != expected.sizes() || got[i].numel() == 0) continue;
    EXPECT_TRUE(same_strides(expected.sizes(), got[i].strides(), expected.strides())) << got[i].strides();
    EXPECT_FALSE(differ_beyond_numbers(got[i], expected)) << i << "\n" << got[i] << "\n" << expected;
  }
  return got;
}

/// In double the same as libtorch but for rounding; in float no farther from what doubles give than libtorch.
/// Results that cancel are as exact as numbers of size `folded` are, which they are folds of.
inline void expect_as_eager(const LoopCall& call, double tolerance = 1e-13, double folded = 0) {
  SCOPED_TRACE(call.op);
  const OneCall wide(call, at::kDouble), narrow(call, at::kFloat);
  Tensors got_wide = expect_replaced(call, wide), got_narrow = expect_replaced(call, narrow);
  // Floats are not the numbers of the doubles that they were made of.
  LoopCall rounded = call;
  for (CallArgument& argument : rounded.arguments)
    if (auto* tensor = std::get_if<at::Tensor>(&argument); tensor && tensor->scalar_type() == at::kDouble)
      *tensor = tensor->to(at::kFloat).to(at::kDouble);
  const OneCall reference(rounded, at::kDouble);
  for (size_t i = 0; i < got_wide.size(); ++i) {
    const at::Tensor &expected = wide.eager()[i], &exact = reference.eager()[i];
    if (got_wide[i].sizes() != expected.sizes() || expected.numel() == 0) continue;
    EXPECT_LE(distance(got_wide[i], expected), tolerance * std::max(1.0, largest_finite(expected))) << i;
    EXPECT_LE(distance(got_narrow[i], exact),
              4 * distance(narrow.eager()[i], exact) + 3e-7 * std::max(largest_finite(exact), folded))
        << i;
  }
}

/// The call stays as it is.
inline void expect_left(const LoopCall& call, at::ScalarType dtype = at::kDouble) {
  SCOPED_TRACE(call.op);
  EXPECT_TRUE(has_operator(OneCall(call, dtype).decomposed(), call.op));
}

/// Always the same numbers for the same sizes and seed.
inline at::Tensor normal(at::IntArrayRef sizes, uint64_t seed = 1) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kDouble);
}

/// Data in both memory formats.
inline std::vector<at::Tensor> in_memory_formats(at::IntArrayRef sizes) {
  at::Tensor x = normal(sizes);
  return {x, x.contiguous(at::MemoryFormat::ChannelsLast)};
}

/// Data that lies in memory in ways that programs have it.
inline std::vector<at::Tensor> laid_out(at::IntArrayRef sizes) {
  at::Tensor x = normal(sizes);
  std::vector<at::Tensor> all = {x};
  if (x.dim() < 2) return all;
  all.push_back(x.transpose(0, -1).contiguous().transpose(0, -1));
  all.push_back(at::stack({x, x}, -1).select(-1, 0));
  all.push_back(x.narrow(0, 0, 1).expand(sizes));
  if (x.dim() == 4) all.push_back(x.contiguous(at::MemoryFormat::ChannelsLast));
  return all;
}

inline const c10::IValue none, yes(true), no(false);

inline c10::IValue mask_of(std::vector<bool> wanted) {
  c10::List<bool> list;
  for (bool each : wanted) list.push_back(each);
  return list;
}

}  // namespace tandem
