// However a function is split: what the caller writes between a call and its backward is refused where
// eager's backward reads it, and is no concern of the backward elsewhere.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::message;

/// Writes one of the inputs and outputs, then asks for the gradient of one output by some of the inputs.
struct Asked {
  size_t written, output;
  std::vector<size_t> inputs;
};

std::string outcome(const Callable& function, const Asked& asked, bool requires_grad) {
  torch::manual_seed(0);
  Tensors known = {torch::rand({3}).requires_grad_(requires_grad), torch::rand({3}).requires_grad_()}, inputs;
  const Tensors outputs = function({known[0], known[1]});
  for (size_t i : asked.inputs) inputs.push_back(known[i]);
  known.insert(known.end(), outputs.begin(), outputs.end());
  {
    at::NoGradGuard no_grad;
    known[asked.written].mul_(2);
  }
  std::ostringstream out;
  out.precision(9);
  out << message([&] {
           for (const at::Tensor& gradient : torch::autograd::grad({outputs[asked.output].sum()}, inputs))
             for (int64_t i = 0; i < 3; ++i) out << gradient[i].item<float>() << " ";
         }).substr(0, 60);
  return out.str();
}

struct WrittenProgram {
  const char* name;
  bool requires_grad;  ///< the first input
  Tensors (*function)(const Tensors&);
  std::vector<Asked> asked;
};

Tensors of_input(const Tensors& in) { return {in[0] * in[1], in[0].sin() * in[1]}; }

Tensors of_output(const Tensors& in) {
  const at::Tensor e = in[0].exp();
  return {e, (e.detach() + 1) * in[1]};
}

Tensors of_view(const Tensors& in) {
  const at::Tensor e = in[0].exp();
  return {e.view({3, 1}), (e.detach().view({1, 3}) + 1) * in[1], e * 2};
}

Tensors twice_over(const Tensors& in) {
  const at::Tensor s = in[0].sin();
  return {s, s * in[1], s.cos().exp() * in[1], in[1] * in[0]};
}

const WrittenProgram written_programs[] = {
    {"an input is read itself and computed from",
     false,
     of_input,
     {{0, 0, {1}}, {0, 1, {1}}, {1, 0, {1}}, {1, 1, {1}}}},
    {"an output is read itself and computed from",
     true,
     of_output,
     {{2, 0, {0}}, {2, 1, {1}}, {3, 0, {0}}, {3, 1, {1}}}},
    {"a view of an output is read itself and computed from",
     true,
     of_view,
     {{2, 0, {0}}, {2, 1, {1}}, {2, 2, {0}}, {3, 0, {0}}}},
    {"an output is computed from twice over",
     false,
     twice_over,
     {{2, 1, {1}}, {2, 2, {1}}, {2, 3, {1}}, {0, 2, {1}}, {0, 3, {1}}}},
};

TEST(WrittenBetween, IsRefusedWhereEagerRefusesAndOnlyThere) {
  for (const char* partitioner : {"min_cut", "default", "recompute_all", "save_all"})
    for (const WrittenProgram& program : written_programs)
      for (const Asked& asked : program.asked) {
        const Compiled fast(program.function, {.partitioner = partitioner});
        const Callable compiled = [&](const Tensors& in) { return fast(in); };
        const std::string got = outcome(compiled, asked, program.requires_grad);
        EXPECT_EQ(got, outcome(program.function, asked, program.requires_grad))
            << program.name << ", " << partitioner << ": " << asked.written << " written, " << asked.output;
      }
}

Tensors by_comparison(const Tensors& in) {
  const at::Tensor e = at::logsumexp(in[0], 0);
  return {e, in[0].sin(), at::where(e > 0, in[0], in[0]),
          at::where(e.detach().view({1}) > 0, in[1], in[1] * 3)};
}

/// It computes the comparisons again rather than keeping them, and eager's backward reads them alone.
TEST(WrittenBetween, WhatAFusingBackendComputesAgainReadsNoOutputOnlyForThat) {
  for (const Asked& asked :
       {Asked{2, 0, {0}}, {2, 1, {0}}, {2, 2, {0}}, {2, 3, {1}}, {3, 0, {0}}, {3, 2, {0}}, {3, 3, {1}}}) {
    const Compiled fast(by_comparison, {.backend = "loops"});
    const Callable compiled = [&](const Tensors& in) { return fast(in); };
    auto is_refused = [&](const Callable& function) {
      return test::contains(outcome(function, asked, true), "one of the variables needed");
    };
    EXPECT_EQ(is_refused(compiled), is_refused(by_comparison))
        << asked.written << " written, " << asked.output << ": " << outcome(compiled, asked, true);
  }
}

}  // namespace
}  // namespace tandem
