/// Halves of a joint graph, run one after the other and compared with the whole.
#pragma once

#include "passes/graphs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <tandem/partition.h>

namespace tandem {

/// x -> dropout(sin(x)) * x, and a gradient that reads the mask and the sine.
inline Joint dropped_sine(int64_t size = 8) {
  GraphWriter w;
  const Value x = w.input({size}), tangent = w.input({size});
  const Value sine = w.call("aten::sin", {x});
  const Node drop = w.node("aten::native_dropout", {sine, number(0.5), c10::IValue(true)});
  const Value dropped = std::get<Value>(drop.results[0]), mask = std::get<Value>(drop.results[1]);
  const Value out = w.call("aten::mul.Tensor", {dropped, x});
  w.phase = Phase::Backward;
  const Value through = w.call("aten::native_dropout_backward",
                               {w.call("aten::mul.Tensor", {tangent, dropped}), mask, number(2.0)});
  w.graph.set_outputs({out, w.call("aten::mul.Tensor", {through, sine})});
  return {w.graph, 1, 1};
}

inline Tensors run_halves(const Partition& halves, size_t forward_outputs, const Tensors& primals,
                          const Tensors& tangents) {
  Tensors outputs = halves.forward.run(Tensors(primals));
  Tensors arguments(outputs.begin() + int64_t(forward_outputs), outputs.end());
  arguments.insert(arguments.end(), tangents.begin(), tangents.end());
  // What the caller writes in between is no concern of the backward, but for what it reads where he has it:
  // there his writes are refused, as in eager.
  for (const at::Tensor& primal : primals)
    if (std::none_of(arguments.begin(), arguments.end(),
                     [&](const at::Tensor& saved) { return saved.is_alias_of(primal); }))
      primal.fill_(99);
  at::rand({3});  // nor what he draws
  Tensors gradients = halves.backward.run(std::move(arguments));
  outputs.resize(forward_outputs);
  outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  return outputs;
}

/// One primal goes in, and one tangent.
inline void expect_joint(const Joint& joint, const Partition& halves) {
  verify(halves, joint, {}, "tested");
  const Dims& size = joint.graph.meta(joint.graph.inputs()[0]).sizes;
  const Tensors primals{at::rand(size, at::kDouble)}, tangents{at::rand(size, at::kDouble)};
  at::manual_seed(3);
  const Tensors want = joint.graph.run({primals[0].clone(), tangents[0]});
  at::manual_seed(3);
  const Tensors got = run_halves(halves, joint.forward_outputs, {primals[0].clone()}, tangents);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
}

}  // namespace tandem
