// The contract is broken by stand-ins for a compiled function that are wrong in one way each; every one of
// them must be found out.
#include "behaviours/row.h"

#include <gtest/gtest-spi.h>

namespace tandem::behaviours {
namespace {

/// What the comparison says of `wrong` as the compiled form of `fn`.
std::string found_out(const Callable& fn, const Callable& wrong, const Maker& make) {
  testing::TestPartResultArray results;
  {
    testing::ScopedFakeTestPartResultReporter catching(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    for (uint64_t seed : {2, 3}) test::compare_detail::compare_call(fn, wrong, make, {}, seed);
  }
  std::string all;
  for (int i = 0; i < results.size(); ++i) all += results.GetTestPartResult(i).message();
  return all;
}

struct Wrong {
  const char* what;
  Callable fn, wrong;
  Maker inputs;
  const char* said;
};

Tensors twice(const Tensors& in) { return {in[0] * 2}; }
Tensors write(const Tensors& in) {
  in[0].mul_(2);
  return {in[0] * 3};
}
Tensors two_views(const Tensors& in) {
  at::Tensor y = in[0] * 2;
  return {y.view({-1}), y.view({-1})};
}

std::vector<Wrong> wrong_stand_ins() {
  const Maker plain = non_leaves({{2, 2}}, {false}), leaf = leaves({{2, 2}}, {true}),
              rg = non_leaves({{2, 2}}, {true});
  return {
      {"a value", twice, [](const Tensors& in) { return Tensors{in[0] * 2.0001}; }, leaf,
       "after the call: output 0"},
      {"a dtype", twice, [](const Tensors& in) { return Tensors{(in[0] * 2).to(at::kDouble)}; }, plain,
       "dtype"},
      {"strides", twice, [](const Tensors& in) { return Tensors{(in[0] * 2).t().contiguous().t()}; }, plain,
       "strides"},
      {"a gradient", [](const Tensors& in) { return Tensors{in[0].detach() * 4 + in[0] * 0}; },
       [](const Tensors& in) { return Tensors{in[0].detach() * 4 + in[0] * 0 + (in[0] - in[0].detach())}; },
       leaf, "gradient of leaf 0"},
      {"requires_grad", twice, [](const Tensors& in) { return Tensors{in[0].detach() * 2}; }, rg,
       "requires_grad is"},
      {"is_leaf", [](const Tensors& in) { return Tensors{(in[0].detach() * 2).requires_grad_()}; }, twice, rg,
       "is_leaf is"},
      {"a write left out", write, [](const Tensors& in) { return Tensors{in[0] * 2 * 3}; }, plain,
       "after the call: argument 0"},
      {"a write too many", twice,
       [](const Tensors& in) {
         at::Tensor y = in[0] * 2;
         in[0].mul_(1);
         return Tensors{y};
       },
       plain, "are counted than in eager"},
      {"an alias of an input lost", [](const Tensors& in) { return Tensors{in[0].view({-1})}; },
       [](const Tensors& in) { return Tensors{in[0].view({-1}).clone()}; }, plain, "share memory"},
      {"an alias among outputs lost", two_views,
       [](const Tensors& in) { return Tensors{(in[0] * 2).view({-1}), (in[0] * 2).view({-1})}; }, rg,
       "share memory"},
      {"a base lost",
       [](const Tensors& in) {
         at::Tensor y = in[0] * 2;
         return Tensors{y, y.view({4})};
       },
       [](const Tensors& in) {
         at::Tensor y = in[0] * 2;
         return Tensors{y, y.detach().view({4})};
       },
       plain, "have one base"},
      {"the kind of a view", [](const Tensors& in) { return Tensors{in[0].t()}; },
       [](const Tensors& in) { return Tensors{in[0].as_strided({2, 2}, {1, 2})}; }, rg, "AsStrided"},
      {"one tensor made two", [](const Tensors& in) { return Tensors{in[0]}; },
       [](const Tensors& in) { return Tensors{in[0].view({2, 2})}; }, plain, "are one tensor"},
      {"an output that refuses writes", twice,
       [](const Tensors& in) { return (in[0] * 2).unsqueeze(0).unbind(); }, rg, "refused"},
      {"an output missing", twice, [](const Tensors&) { return Tensors{}; }, plain, "after the call: output"},
      {"an error", twice, [](const Tensors&) -> Tensors { throw std::runtime_error("no such thing"); }, plain,
       "no such thing"},
  };
}

TEST(Contract, FindsOutEveryWrongStandIn) {
  for (const Wrong& wrong : wrong_stand_ins()) {
    std::string said = found_out(wrong.fn, wrong.wrong, wrong.inputs);
    EXPECT_TRUE(test::contains(said, wrong.said))
        << wrong.what << " was not found out; the comparison said: " << said;
    EXPECT_EQ(found_out(wrong.fn, wrong.fn, wrong.inputs), "")
        << wrong.what << ": the function itself is no good";
  }
}

}  // namespace
}  // namespace tandem::behaviours
