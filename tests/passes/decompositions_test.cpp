#include "ops/facts.h"
#include "passes/graphs.h"

#include <tandem/error.h>
#include <tandem/passes.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

TensorMeta meta_of(GraphWriter& w, const at::Tensor& t) {
  return w.meta(Dims(t.sizes().begin(), t.sizes().end()), t.scalar_type(),
                Dims(t.strides().begin(), t.strides().end()));
}

/// Decomposes one call on these tensors and compares with the operator itself.
void expect_equal(const char* op, const std::vector<std::variant<at::Tensor, c10::IValue>>& arguments,
                  double tolerance = 1e-12) {
  SCOPED_TRACE(op);
  GraphWriter w;
  std::vector<Operand> operands;
  Tensors inputs;
  for (const auto& argument : arguments) {
    if (auto* tensor = std::get_if<at::Tensor>(&argument)) {
      operands.push_back(w.graph.add_input(meta_of(w, *tensor)));
      inputs.push_back(*tensor);
    } else {
      operands.push_back(std::get<c10::IValue>(argument));
    }
  }
  w.graph.set_outputs({w.call(op, operands)});
  Graph graph = decompose(w.graph, default_decompositions());
  graph.verify();
  for (const Node& node : graph.nodes())
    EXPECT_FALSE(default_decompositions().contains(full_name(node.op))) << full_name(node.op);
  EXPECT_EQ(graph.outputs(), w.graph.outputs());
  at::Tensor expected = w.graph.run(Tensors(inputs))[0], got = graph.run(Tensors(inputs))[0];
  ASSERT_EQ(got.dtype(), expected.dtype());
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_EQ(got.strides(), expected.strides());
  EXPECT_TRUE(at::allclose(got, expected, tolerance, tolerance * 1e-2, /*equal_nan=*/true))
      << (got - expected).abs().max();
}

/// Values on both sides of every kink, and the kinks themselves.
at::Tensor spread(at::ScalarType dtype = at::kDouble) { return at::linspace(-8, 8, 65, dtype); }
at::Tensor gradient_like(const at::Tensor& x) {
  return at::linspace(0.3, 1.7, x.numel(), x.options()).view(x.sizes());
}

}  // namespace

TEST(Decompositions, BackwardsEqualTheirOperators) {
  at::Tensor x = spread(), g = gradient_like(x);
  expect_equal("aten::gelu_backward", {g, x, c10::IValue("none")});
  expect_equal("aten::gelu_backward", {g, x, c10::IValue("tanh")});
  expect_equal("aten::leaky_relu_backward", {g, x, number(0.1), c10::IValue(false)});
  expect_equal("aten::sigmoid_backward", {g, x.sigmoid()});
  expect_equal("aten::threshold_backward", {g, x, number(0.5)});
  expect_equal("aten::hardtanh_backward", {g, x, number(-1.0), number(2.0)});
  expect_equal("aten::hardsigmoid_backward", {g, x});
  expect_equal("aten::hardswish_backward", {g, x});
  expect_equal("aten::tanh_backward", {g, x.tanh()});
  expect_equal("aten::silu_backward", {g, x});
  for (bool is_result : {false, true})
    expect_equal("aten::elu_backward", {g, number(1.3), number(1.1), number(0.7), c10::IValue(is_result),
                                        is_result ? at::elu(x, 1.3, 1.1, 0.7) : x});
}

TEST(Decompositions, ActivationsEqualTheirOperators) {
  at::Tensor x = spread();
  expect_equal("aten::elu", {x, number(1.3), number(1.1), number(0.7)});
  expect_equal("aten::leaky_relu", {x, number(0.1)});
  expect_equal("aten::hardtanh", {x, number(-1.0), number(2.0)});
  expect_equal("aten::hardswish", {x});
  expect_equal("aten::hardsigmoid", {x});
}

TEST(Decompositions, NotANumberGoesWhereTheOperatorSendsIt) {
  at::Tensor x = at::full({3}, std::numeric_limits<double>::quiet_NaN(), at::kDouble),
             g = at::ones({3}, at::kDouble);
  expect_equal("aten::threshold_backward", {g, x, number(0.5)});
  expect_equal("aten::leaky_relu", {x, number(0.1)});
  expect_equal("aten::hardtanh", {x, number(-1.0), number(2.0)});
  expect_equal("aten::hardtanh_backward", {g, x, number(-1.0), number(2.0)});
  expect_equal("aten::elu", {x, number(1.0), number(1.0), number(1.0)});
}

TEST(Decompositions, HalfPrecisionIsComputedInFloat) {
  at::Tensor x = spread(at::kBFloat16), g = gradient_like(x);
  expect_equal("aten::gelu_backward", {g, x, c10::IValue("none")}, 1e-2);
  expect_equal("aten::silu_backward", {g, x}, 1e-2);
  expect_equal("aten::hardswish", {x}, 1e-2);
}

TEST(Decompositions, MaskedFillTakesNumbersAndTensors) {
  at::Tensor x = spread(), mask = x > 1;
  expect_equal("aten::masked_fill.Scalar", {x, mask, number(-2.0)});
  expect_equal("aten::masked_fill.Scalar", {x.to(at::kLong), mask, number(int64_t(7))});
  expect_equal("aten::masked_fill.Tensor", {x, mask, at::scalar_tensor(3, at::kFloat)});
  expect_equal("aten::masked_fill.Scalar",
               {at::rand({3, 4}, at::kDouble).t(), at::rand({3}) > 0.5, number(0.0)});
}

TEST(Decompositions, ConjPhysicalIsACopyEvenOfRealNumbers) {
  expect_equal("aten::conj_physical", {at::rand({4}, at::kComplexDouble)});
  GraphWriter w;
  Value x = w.input({4});
  w.graph.set_outputs({w.call("aten::conj_physical", {x})});
  at::Tensor in = at::rand({4}, at::kDouble);
  at::Tensor out = decompose(w.graph, default_decompositions()).run({in})[0];
  EXPECT_TRUE(at::equal(out, in));
  EXPECT_FALSE(out.is_alias_of(in));
}

TEST(Decompositions, LayoutsAreKept) {
  at::Tensor x = at::rand({3, 4, 5}, at::kDouble).permute({2, 0, 1}),
             g = at::rand({1}, at::kDouble).expand({5, 3, 4});
  expect_equal("aten::gelu_backward", {g, x, c10::IValue("none")});
  expect_equal("aten::hardtanh_backward", {at::rand({5, 3, 4}, at::kDouble), x, number(0.2), number(0.8)});
  expect_equal("aten::elu", {x, number(1.0), number(1.0), number(1.0)});
}

/// J3, as far as it can be seen without cuDNN: the native operator on half-precision data with float
/// parameters.
TEST(Decompositions, J3CudnnBatchNormBecomesNative) {
  GraphWriter w;
  Value x = w.input({4, 3, 5, 5}, at::kBFloat16), weight = w.input({3}, at::kFloat),
        bias = w.input({3}, at::kFloat);
  Value mean = w.input({3}, at::kFloat), var = w.input({3}, at::kFloat);
  auto value = [&](Dims sizes, at::ScalarType dtype) { return w.graph.add_value(w.meta(sizes, dtype)); };
  Value out = value({4, 3, 5, 5}, at::kBFloat16), saved_mean = value({3}, at::kFloat),
        saved_var = value({3}, at::kFloat), reserve = value({16}, at::kByte);
  Value new_mean = value({3}, at::kFloat), new_var = value({3}, at::kFloat);
  w.graph.add_node(Node{find_op("aten::cudnn_batch_norm"),
                        {x, weight, bias, mean, var, c10::IValue(true), number(0.1), number(1e-5)},
                        {out, saved_mean, saved_var, reserve},
                        {{mean, new_mean}, {var, new_var}}});
  w.graph.set_outputs({out, saved_mean, saved_var, new_mean, new_var});
  Graph graph = eliminate_dead_code(decompose(w.graph, default_decompositions()));
  graph.verify();
  EXPECT_FALSE(has_call(graph, "aten::cudnn_batch_norm"));

  at::Tensor data = at::randn({4, 3, 5, 5}).to(at::kBFloat16), scale = at::rand({3}), shift = at::rand({3}),
             old_mean = at::rand({3}), old_var = at::rand({3});
  Tensors got = graph.run({data, scale, shift, old_mean, old_var});
  at::Tensor wide = data.to(at::kFloat), m = wide.mean({0, 2, 3}), v = wide.var({0, 2, 3}, false),
             unbiased = wide.var({0, 2, 3}, true);
  at::Tensor invstd = (v + 1e-5).rsqrt();
  at::Tensor expected =
      (wide - m.view({1, 3, 1, 1})) * (invstd * scale).view({1, 3, 1, 1}) + shift.view({1, 3, 1, 1});
  EXPECT_TRUE(at::allclose(got[0].to(at::kFloat), expected, 1e-2, 1e-2));
  EXPECT_TRUE(at::allclose(got[1], m, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(got[2], invstd, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(got[3], old_mean * 0.9 + m * 0.1, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(got[4], old_var * 0.9 + unbiased * 0.1, 1e-4, 1e-5));
}

TEST(Decompositions, ARowMayLeadToAnotherRow) {
  GraphWriter w;
  Value x = w.input({4});
  w.graph.set_outputs({w.call("aten::tanh", {x})});
  DecompositionTable table;
  auto to = [](const char* op) {
    return [op](Graph& g, const Node& n) {
      return std::vector<Value>{
          std::get<Value>(append_call(g, find_op(op), n.arguments, n.phase).results[0])};
    };
  };
  table["aten::tanh"] = to("aten::sin");
  table["aten::sin"] = to("aten::cos");
  Graph graph = decompose(w.graph, table);
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_TRUE(has_call(graph, "aten::cos"));
  table["aten::cos"] = to("aten::tanh");
  EXPECT_THROW(decompose(w.graph, table), Error);
}

TEST(Decompositions, AnotherSizeOrCountIsAnError) {
  GraphWriter w;
  Value x = w.input({4});
  w.graph.set_outputs({w.call("aten::tanh", {x})});
  DecompositionTable table;
  table["aten::tanh"] = [](Graph& g, const Node& n) {
    return std::vector<Value>{
        std::get<Value>(append_call(g, find_op("aten::sum"), {n.arguments[0]}, n.phase).results[0])};
  };
  EXPECT_THROW(decompose(w.graph, table), Error);
  table["aten::tanh"] = [](Graph&, const Node& n) {
    return std::vector<Value>{std::get<Value>(n.arguments[0]), std::get<Value>(n.arguments[0])};
  };
  EXPECT_THROW(decompose(w.graph, table), Error);
}

TEST(Decompositions, AnEmptyAnswerLeavesTheCall) {
  at::Tensor y = at::rand({4}, at::kComplexDouble);
  GraphWriter w;
  Value g = w.graph.add_input(meta_of(w, y)), x = w.graph.add_input(meta_of(w, y));
  w.graph.set_outputs({w.call("aten::tanh_backward", {g, x})});
  EXPECT_TRUE(has_call(decompose(w.graph, default_decompositions()), "aten::tanh_backward"));
}

TEST(Decompositions, ARegisteredRowJoinsTheDefaultTable) {
  register_decomposition("aten::exp2", [](Graph& g, const Node& n) {
    Value scaled = std::get<Value>(
        append_call(g, find_op("aten::mul.Scalar"), {n.arguments[0], number(0.6931471805599453)}, n.phase)
            .results[0]);
    return std::vector<Value>{
        std::get<Value>(append_call(g, find_op("aten::exp"), {scaled}, n.phase).results[0])};
  });
  expect_equal("aten::exp2", {spread()}, 1e-11);
  EXPECT_THROW(register_decomposition("aten::no_such_operator",
                                      [](Graph&, const Node&) { return std::vector<Value>(); }),
               Error);
}

}  // namespace tandem
