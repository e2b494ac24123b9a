/// Holds functions of wrappers to the contract: the harness sees the tensors inside.
#pragma once

#include "behaviours/row.h"
#include "frontend/pairs.h"

namespace tandem::behaviours {

using test::Nested;
using test::Pair;
using test::Scaled;

/// `fn` as a function of a list; `gather` makes the tuple of its arguments.
template <class F, class Gather>
Callable listed(F fn, Gather gather) {
  return [=](const Tensors& in) { return tensors_of(std::apply(fn, gather(in))); };
}

/// What `hold` does for functions of lists, through the typed compile.
template <class F, class Gather>
void hold_typed(const F& fn, const Gather& gather, const std::vector<Maker>& inputs,
                Expectations expect = {}) {
  expect.options.debug_asserts = true;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const char* backend : {"eager", "debug"})
      for (bool keep : {true, false}) {
        SCOPED_TRACE("inputs " + std::to_string(i) + ", backend " + backend +
                     (keep ? ", writes kept" : ", writes returned"));
        Options options = expect.options;
        options.backend = backend;
        options.keep_input_mutations = keep;
        auto compiled = compile(fn, options);
        torch::manual_seed(7);
        Explanation explanation =
            std::apply([&](const auto&... arguments) { return compiled.explain(arguments...); },
                       gather(inputs[i]().arguments));
        EXPECT_TRUE(explanation.eager_reason.empty() || !expect.compiled) << explanation.eager_reason;
        if (!explanation.eager_reason.empty())
          remark("uncompiled: " + explanation.eager_reason.substr(0, explanation.eager_reason.find('\n')));
        test::verify(explanation);
        for (uint64_t seed : {2, 3})
          test::compare_detail::compare_call(listed(fn, gather), listed(compiled, gather), inputs[i], expect,
                                             seed);
        if (testing::Test::HasFailure()) return;
      }
}

/// The arguments of a function of one pair, of a plain tensor and a pair, of two pairs.
inline std::tuple<Pair> one_pair(const Tensors& in) { return {Pair{in[0], in[1]}}; }
inline std::tuple<at::Tensor, Pair> tensor_and_pair(const Tensors& in) { return {in[0], Pair{in[1], in[2]}}; }
inline std::tuple<Pair, Pair> two_pairs(const Tensors& in) {
  return {Pair{in[0], in[1]}, Pair{in[2], in[3]}};
}

}  // namespace tandem::behaviours
