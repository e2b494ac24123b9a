#include "backends/interpreter.h"
#include "passes/graphs.h"

#include <tandem/error.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

at::Tensor tensor(Dims sizes) { return at::rand(sizes, at::kDouble); }

/// A tensor that raises a flag when its memory goes.
at::Tensor watched(bool& gone) {
  auto* data = new double[3]{1, 2, 3};
  return at::from_blob(data, {3}, [data, &gone](void*) { delete[] data, gone = true; }, at::kDouble);
}

}  // namespace

TEST(Interpreter, AnInputDiesAtItsLastUse) {
  GraphWriter w;
  Value x = w.input({3}), y = w.input({3});
  Value a = w.call("aten::sin", {x});
  Value b = w.call("aten::cos", {a});
  w.graph.set_outputs({w.call("aten::mul.Tensor", {b, y})});
  bool x_gone = false, y_gone = false;
  Tensors inputs;
  inputs.push_back(watched(x_gone));
  inputs.push_back(watched(y_gone));
  std::vector<std::pair<bool, bool>> gone;
  Interpreter(w.graph).run(std::move(inputs),
                           [&](size_t, const at::Tensor*) { gone.emplace_back(x_gone, y_gone); });
  EXPECT_EQ(gone, (std::vector<std::pair<bool, bool>>{{true, false}, {true, false}, {true, true}}));
}

TEST(Interpreter, AnInputThatNothingReadsDiesAtOnce) {
  GraphWriter w;
  w.input({3});
  w.graph.set_outputs({w.call("aten::sin", {w.input({3})})});
  bool gone = false, gone_early = false;
  Tensors inputs;
  inputs.push_back(watched(gone));
  inputs.push_back(tensor({3}));
  Interpreter(w.graph).run(std::move(inputs), [&](size_t, const at::Tensor*) { gone_early = gone; });
  EXPECT_TRUE(gone_early);
}

TEST(Interpreter, ALongChainHoldsTwoTensorsAtMost) {
  GraphWriter w;
  Value v = w.input({3});
  const char* ops[] = {"aten::sin", "aten::expm1", "aten::neg", "aten::floor"};
  for (int i = 0; i < 40; ++i) v = w.call(ops[i % 4], {v});
  w.graph.set_outputs({v});
  Interpreter interpreter(w.graph);
  interpreter.run({tensor({3})}, [&](size_t, const at::Tensor* registers) {
    EXPECT_EQ(registers[0].defined() + registers[1].defined(), 1);
  });
}

TEST(Interpreter, AResultThatNothingReadsIsNotKept) {
  GraphWriter w;
  Value x = w.input({3, 4});
  Node best = w.node("aten::max.dim", {x, number(int64_t(1))});
  w.graph.set_outputs({std::get<Value>(best.results[1])});
  at::Tensor in = tensor({3, 4});
  EXPECT_TRUE(at::equal(Interpreter(w.graph).run({in})[0], in.argmax(1)));
}

TEST(Interpreter, TakesListsAndOptionalListsAndNones) {
  GraphWriter w;
  Value x = w.input({3, 4}), index = w.input({2}, at::kLong);
  Value both = w.call("aten::cat", {std::vector<Value>{x, x}, number(int64_t(0))});
  Value picked = w.call("aten::index.Tensor", {both, std::vector<Value>{Value(), index}});
  Node parts = w.node("aten::unbind.int", {picked, number(int64_t(1))});
  Value first = std::get<std::vector<Value>>(parts.results[0])[0];
  Value norm = w.call("aten::native_layer_norm", {x, ints({4}), Value(), c10::IValue(), number(1e-5)});
  w.graph.set_outputs({first, norm, Value(), x});
  at::Tensor in = tensor({3, 4}), at_ = at::arange(1, 3);
  Tensors out = Interpreter(w.graph).run({in, at_});
  EXPECT_TRUE(at::equal(out[0], at::cat({in, in}).select(1, 1)));
  EXPECT_TRUE(at::equal(out[1], std::get<0>(at::native_layer_norm(in, {4}, {}, {}, 1e-5))));
  EXPECT_FALSE(out[2].defined());
  EXPECT_TRUE(out[3].is_same(in));
}

TEST(Interpreter, AWrittenArgumentIsTheValueBehindTheWrite) {
  GraphWriter w;
  Value x = w.input({3}), y = w.input({3});
  Value copy = w.call("aten::clone", {x});
  Value after = w.graph.add_value(w.graph.meta(copy)), result = w.graph.add_value(w.graph.meta(copy));
  w.graph.add_node(Node{find_op("aten::mul_.Tensor"), {copy, y}, {result}, {{copy, after}}});
  w.graph.set_outputs({w.call("aten::sin", {after})});
  at::Tensor a = tensor({3}), b = tensor({3});
  EXPECT_TRUE(at::equal(Interpreter(w.graph).run({a, b})[0], (a * b).sin()));
}

TEST(Interpreter, ATrailingCopyWritesTheCallersTensor) {
  GraphWriter w;
  Value x = w.input({3});
  Value doubled = w.call("aten::mul.Scalar", {x, number(2.0)});
  Value after = w.graph.add_value(w.graph.meta(x));
  w.graph.add_node(Node{find_op("aten::copy_"), {x, doubled, c10::IValue(false)}, {after}, {{x, after}}});
  w.graph.set_outputs({after});
  at::Tensor in = at::ones({3}, at::kDouble);
  Tensors out = Interpreter(w.graph).run({in});
  EXPECT_TRUE(at::equal(in, at::full({3}, 2.0, at::kDouble)));
  EXPECT_TRUE(out[0].is_same(in));
}

TEST(Interpreter, ConstantsAreNeverHandedOutNorWritten) {
  GraphWriter w;
  Value c = w.constant(at::ones({3}, at::kDouble));
  w.graph.set_outputs({c});
  Interpreter interpreter(w.graph);
  interpreter.run({})[0].zero_();
  EXPECT_TRUE(at::equal(interpreter.run({})[0], at::ones({3}, at::kDouble)));
  Value after = w.graph.add_value(w.graph.meta(c));
  w.graph.add_node(Node{find_op("aten::zero_"), {c}, {after}, {{c, after}}});
  EXPECT_THROW(Interpreter{w.graph}, Error);
}

TEST(Interpreter, AddsIntoAnOperandThatDies) {
  GraphWriter w;
  Value x = w.input({3});
  Value a = w.call("aten::sin", {x}), b = w.call("aten::cos", {x});
  Value sum = w.call("aten::add.Tensor", {a, b});
  w.graph.set_outputs({sum});
  std::vector<const void*> seen;
  at::Tensor in = tensor({3});
  Tensors out = Interpreter(w.graph).run({in}, [&](size_t index, const at::Tensor* registers) {
    if (index == 0)
      for (int i = 0; i < 2; ++i)
        if (registers[i].defined() && !registers[i].is_same(in))
          seen.push_back(registers[i].const_data_ptr());
  });
  EXPECT_TRUE(at::equal(out[0], in.sin() + in.cos()));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(out[0].const_data_ptr(), seen[0]);
}

TEST(Interpreter, AddsIntoNothingThatSomebodyElseSees) {
  GraphWriter w;
  Value x = w.input({3}), y = w.input({3});
  // inputs are the caller's
  Value of_inputs = w.call("aten::add.Tensor", {x, y});
  Value a = w.call("aten::sin", {x});
  Value view = w.call("aten::view", {a, ints({3})});
  Value of_viewed = w.call("aten::add.Tensor", {view, y});  // `a` is read again
  Value b = w.call("aten::cos", {x});
  Value of_output = w.call("aten::add.Tensor", {b, y});  // `b` is an output
  Value small = w.call("aten::sum", {x});
  Value of_small = w.call("aten::add.Tensor", {small, y});  // broadcast
  w.graph.set_outputs({of_inputs, of_viewed, a, of_output, b, of_small});
  at::Tensor p = tensor({3}), q = tensor({3}), p_before = p.clone(), q_before = q.clone();
  Tensors out = Interpreter(w.graph).run({p, q});
  EXPECT_TRUE(at::equal(p, p_before));
  EXPECT_TRUE(at::equal(q, q_before));
  Tensors expected{p + q, p.sin() + q, p.sin(), p.cos() + q, p.cos(), p.sum() + q};
  for (size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(at::equal(out[i], expected[i])) << i;
}

TEST(Interpreter, AddsIntoNoInputEvenWhenItHoldsTheLastReference) {
  GraphWriter w;
  Value x = w.input({3}), y = w.input({3});
  w.graph.set_outputs({w.call("aten::add.Tensor", {x, y})});
  double memory[3] = {1, 2, 3};
  Tensors inputs;
  inputs.push_back(at::from_blob(memory, {3}, at::kDouble));
  inputs.push_back(tensor({3}));
  Interpreter(w.graph).run(std::move(inputs));
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(memory[2], 3);
}

TEST(Interpreter, TheSameValueTwiceInACall) {
  GraphWriter w;
  Value x = w.input({3});
  Value a = w.call("aten::sin", {x});
  Value b = w.call("aten::mul.Tensor", {a, a});
  w.graph.set_outputs({w.call("aten::add.Tensor", {b, b}), x, x});
  at::Tensor in = tensor({3});
  Tensors out = Interpreter(w.graph).run({in});
  EXPECT_TRUE(at::equal(out[0], in.sin().square() * 2));
  EXPECT_TRUE(out[1].is_same(out[2]));
}

TEST(Interpreter, ANumberWrappedAsATensorIsPassedAsOne) {
  at::Tensor number = at::scalar_tensor(2.5, at::kDouble);
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  GraphWriter w;
  Value x = w.input({3}, at::kFloat);
  w.graph.set_outputs({w.call("aten::mul.Tensor", {x, c10::IValue(number)})});
  at::Tensor input = at::rand({3});
  at::Tensor result = Interpreter(w.graph).run({input})[0];
  EXPECT_EQ(result.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(result, input * 2.5));
}

TEST(Interpreter, AWrongNumberOfInputsIsAnError) {
  GraphWriter w;
  w.graph.set_outputs({w.call("aten::sin", {w.input({3})})});
  EXPECT_THROW(Interpreter(w.graph).run({}), ContractError);
}

TEST(Interpreter, NoAutogradKernelIsEntered) {
  GraphWriter w;
  w.graph.set_outputs({w.call("aten::sin", {w.input({3})})});
  EXPECT_FALSE(Interpreter(w.graph).run({tensor({3}).requires_grad_()})[0].requires_grad());
}

}  // namespace tandem
