// Outputs that are views, beyond the rows of the table of behaviours.
#include "runtime/compare.h"

namespace tandem {
namespace {

TEST(OutputViews, AreOfARealWriteLaterOn) {
  for (bool keep : {true, false}) {
    Compiled fast([](const Tensors& in) { at::Tensor b = in[0] + 1; return Tensors{b, b.slice(0, 1), in[0].slice(0, 1)}; }, {.keep_input_mutations = keep});
    at::Tensor a = torch::zeros(3);
    Tensors out = fast({a});
    out[0].add_(1);
    a.add_(5);
    EXPECT_TRUE(test::same_values(out[1], torch::full(2, 2.f)));
    EXPECT_TRUE(test::same_values(out[2], torch::full(2, 5.f)));
  }
}

}  // namespace
}  // namespace tandem
