// What the comparison lines up: orders above a conceded gradient, and the steps of a program that somebody
// reads.
#include "fuzz/observe.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tandem::fuzz {
namespace {

Seen begins(size_t order) { return {"gradient of order " + std::to_string(order), "", has_gradients}; }
Seen gradient(size_t order, double value, bool requires_grad) {
  return {"gradient of order " + std::to_string(order),
          "",
          requires_grad ? "Double[] requires_grad" : "Double[] leaf",
          "",
          "",
          "",
          torch::full({}, value, at::kDouble),
          Exactness::Rounded,
          false};
}

std::optional<Mismatch> compare(std::vector<Seen> want, std::vector<Seen> got) {
  std::set<std::string> concessions;
  return difference(Expected{{std::move(want)}}, {std::move(got)}, concessions);
}

TEST(Alignment, OrdersAboveAConstantZeroAreLeftOut) {
  const std::vector<Seen> eager = {begins(1), gradient(1, 0, false), begins(1), gradient(1, 2, true),
                                   begins(2), gradient(2, 3, false)};
  std::vector<Seen> compiled = {begins(1), gradient(1, 0, true), begins(2), gradient(2, 0, false),
                                begins(1), gradient(1, 2, true), begins(2), gradient(2, 3, false)};
  EXPECT_FALSE(compare(eager, compiled));
  EXPECT_FALSE(compare(compiled, eager));
  compiled.back() = gradient(2, 4, false);
  EXPECT_TRUE(compare(eager, compiled)) << "the next turn is compared";
}

TEST(Alignment, AGradientMayBeConstantWhereAllGradientsOfItAreZero) {
  const std::vector<Seen> constant = {begins(1), gradient(1, 1, false)},
                          plain = {begins(1), gradient(1, 1, true), begins(2), gradient(2, 0, false)};
  EXPECT_FALSE(compare(constant, plain));
  EXPECT_FALSE(compare(plain, constant));
  const std::vector<Seen> other = {begins(1), gradient(1, 1, true), begins(2), gradient(2, 3, false)};
  EXPECT_TRUE(compare(constant, other));
  EXPECT_TRUE(compare(other, constant));
  EXPECT_TRUE(compare(constant, {begins(1), gradient(1, 2, true), begins(2), gradient(2, 0, false)}));
  EXPECT_TRUE(
      compare({begins(1), gradient(1, 0, false), gradient(1, 1, true), begins(2), gradient(2, 3, false)},
              {begins(1), gradient(1, 0, true), gradient(1, 1, false), begins(2), gradient(2, 0, false)}))
      << "a constant zero beside it does not make it one";
}

size_t row_of(const std::string& text) {
  for (size_t r = 0; r < rows().size(); ++r)
    if (rows()[r].text == text) return r;
  throw std::runtime_error("no row " + text);
}

Program with_steps(std::vector<Step> steps, std::vector<size_t> outputs) {
  Given given;
  given.dtype = at::kDouble;
  given.sizes = {3};
  return {{given}, std::move(steps), std::move(outputs)};
}

TEST(Alignment, AWriteToACopyOfAnotherDtypeIsReadByNobody) {
  const Program program = with_steps(
      {{row_of("t[0].to(at::kFloat)"), {0}, {}, false, {1}}, {row_of("t[0].sin_()"), {1}, {}, false, {2}}},
      {0});
  EXPECT_TRUE(without_unread(program).steps.empty());
}

TEST(Alignment, AWriteThroughAViewIsRead) {
  const Program program = with_steps(
      {{row_of("t[0].alias()"), {0}, {}, false, {1}}, {row_of("t[0].sin_()"), {1}, {}, false, {2}}}, {0});
  EXPECT_EQ(without_unread(program).steps.size(), 2u);
}

TEST(Alignment, RandomNumbersAreDrawnThoughNobodyReadsThem) {
  const Program program = with_steps(
      {{row_of("at::exp(t[0])"), {0}, {}, false, {1}}, {row_of("t[0].uniform_()"), {1}, {}, false, {2}}},
      {0});
  torch::manual_seed(3);
  const at::Tensor before = torch::rand({1});
  torch::manual_seed(3);
  EXPECT_EQ(without_unread(program).steps.size(), 2u);
  EXPECT_TRUE(at::equal(torch::rand({1}), before)) << "asking draws none itself";
}

TEST(Alignment, AStepThatEagerRefusesIsLeftOutWhereNobodyReadsItsTarget) {
  const Program program = with_steps({{row_of("at::exp(t[0])"), {0}, {}, false, {1}},
                                      {row_of("t[0].t()"), {1}, {}, false, {2}},
                                      {row_of("t[0].addmm_(t[1], t[2])"), {1, 0, 0}, {}, false, {3}}},
                                     {0});
  EXPECT_TRUE(without_unread(program).steps.empty());
}

TEST(Alignment, AStepWhoseSizesAloneAreReadIsNotRefused) {
  Program program = with_steps({{row_of("at::fmod(t[0], t[1])"), {0, 0}, {}, false, {1}},
                                {row_of("t[0].permute({1, 0})"), {1}, {}, false, {2}},
                                {row_of("t[0].expand_as(t[1])"), {0, 2}, {}, false, {3}}},
                               {3});
  program.given[0].dtype = at::kLong;
  program.given[0].sizes = {2, 2};
  const Tensors zeros{at::zeros({2, 2}, at::kLong)};
  EXPECT_THROW(interpret(program, zeros), std::exception);
  EXPECT_TRUE(at::equal(interpret(without_unread(program), zeros)[0], zeros[0]));
  program.outputs = {2};
  EXPECT_THROW(interpret(without_unread(program), zeros), std::exception) << "what is read is computed";
}

TEST(Alignment, AValueThatIsOverwrittenIsNotRead) {
  const Program program = with_steps(
      {{row_of("at::exp(t[0])"), {0}, {}, false, {1}}, {row_of("t[0].copy_(t[1])"), {1, 0}, {}, false, {2}}},
      {1});
  const Program needed = without_unread(program);
  ASSERT_EQ(needed.steps.size(), 2u);
  EXPECT_TRUE(needed.steps[0].sizes_alone);
  const Tensors three{torch::randn({3}, at::kDouble)};
  EXPECT_TRUE(at::equal(interpret(needed, three)[0], three[0]));
}

TEST(Alignment, AWriteThatNobodyReadsAndEagerRefusesIsCounted) {
  const Program program = with_steps({{row_of("at::exp(t[0])"), {0}, {}, false, {1}},
                                      {row_of("at::mul(t[0], t[1])"), {1, 1}, {}, false, {2}},
                                      {row_of("t[0].addmm_(t[1], t[2])"), {1, 0, 0}, {}, false, {3}}},
                                     {2});
  const Program needed = without_unread(program);
  ASSERT_EQ(needed.steps.size(), 3u);
  const at::Tensor leaf = torch::randn({3}, at::kDouble).requires_grad_();
  const at::Tensor square = interpret(needed, {leaf})[0];
  EXPECT_TRUE(at::equal(square, (leaf.exp() * leaf.exp())));
  EXPECT_THROW(square.sum().backward(), c10::Error) << "what it saved counts as written";
}

TEST(Alignment, AnArgumentThatStartsToRequireGradHasChanged) {
  Program program = with_steps({{row_of("t[0].requires_grad_()"), {0}, {}, false, {1}}}, {});
  program.given[0].requires_grad = false;
  EXPECT_EQ(without_unread(program).steps.size(), 1u);
}

}  // namespace
}  // namespace tandem::fuzz
