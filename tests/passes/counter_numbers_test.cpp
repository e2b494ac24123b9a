// Counter-based random numbers: how they are made, what they are like, and the pass that puts them into a
// graph.
#include "passes/counter_numbers.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <gtest/gtest.h>
#include <tandem/error.h>
#include <tandem/passes.h>

#include "graph/draws.h"
#include "ops/counter_numbers.h"
#include "ops/facts.h"
#include "passes/graphs.h"

namespace tandem::counted {
namespace {

at::Tensor seed_of(int64_t key, int64_t offset) { return at::tensor({key, offset}, at::kLong); }

at::Tensor numbers(const char* op, const at::Tensor& seed, int64_t stream, at::IntArrayRef size,
                   at::ScalarType dtype = at::kFloat) {
  using Kernel = at::Tensor(const at::Tensor&, int64_t, at::IntArrayRef, at::ScalarType, c10::Device);
  return find_op(op).typed<Kernel>().call(seed, stream, size, dtype, c10::kCPU);
}
at::Tensor uniforms(const at::Tensor& seed, int64_t stream, at::IntArrayRef size,
                    at::ScalarType dtype = at::kFloat) {
  return numbers("tandem::counter_uniform", seed, stream, size, dtype);
}
at::Tensor normals(const at::Tensor& seed, int64_t stream, at::IntArrayRef size,
                   at::ScalarType dtype = at::kFloat) {
  return numbers("tandem::counter_normal", seed, stream, size, dtype);
}

constexpr int64_t many = 1 << 18;

/// How far the share of numbers below x is from `distribution(x)`, at most, in units of 1 / sqrt(n): above
/// 1.95 once in a thousand.
double distance(const at::Tensor& drawn, const std::function<at::Tensor(const at::Tensor&)>& distribution) {
  const at::Tensor want = distribution(std::get<0>(drawn.to(at::kDouble).sort()));
  const double n = double(drawn.numel());
  const at::Tensor above = (at::arange(1, n + 1, at::kDouble) / n - want).max(),
                   below = (want - at::arange(0, n, at::kDouble) / n).max();
  return std::max(above.item<double>(), below.item<double>()) * std::sqrt(n);
}

double correlation(const at::Tensor& a, const at::Tensor& b) {
  auto centred = [](const at::Tensor& x) { return x.to(at::kDouble) - x.to(at::kDouble).mean(); };
  const at::Tensor x = centred(a), y = centred(b);
  return ((x * y).sum() / (x.square().sum() * y.square().sum()).sqrt()).item<double>();
}

size_t calls_of(const Graph& graph, const std::string& name) {
  const auto& nodes = graph.nodes();
  return size_t(std::count_if(nodes.begin(), nodes.end(),
                              [&](const Node& node) { return node.op.operator_name().name == name; }));
}

}  // namespace

TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t all = 0xffffffff;
  EXPECT_EQ(philox({all, all, all, all}, {all, all}),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, GivesWhatLibtorchsEngineGives) {
  for (uint64_t i = 0; i < 100; ++i) {
    const uint64_t key = i * 0x9e3779b97f4a7c15, high = key * 31, low = key * 17 + i;
    at::Philox4_32 engine(key, high, low);
    for (uint32_t word : philox({uint32_t(low), uint32_t(low >> 32), uint32_t(high), uint32_t(high >> 32)},
                                {uint32_t(key), uint32_t(key >> 32)}))
      EXPECT_EQ(engine(), word) << i;
  }
}

TEST(CounterNumbers, AreAFunctionOfSeedStreamAndIndex) {
  for (const auto& draw : {uniforms, normals})
    for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
      const at::Tensor all = draw(seed_of(5, 7), 3, {1001}, dtype);
      EXPECT_EQ(all.scalar_type(), dtype);
      EXPECT_TRUE(at::equal(draw(seed_of(5, 7), 3, {7, 11, 13}, dtype).flatten(), all));
      EXPECT_TRUE(at::equal(draw(seed_of(5, 7), 3, {10}, dtype), all.slice(0, 0, 10)));
      EXPECT_EQ(draw(seed_of(5, 7), 3, {4, 0}, dtype).numel(), 0);
      for (const at::Tensor& other :
           {draw(seed_of(6, 7), 3, {1001}, dtype), draw(seed_of(5, 8), 3, {1001}, dtype),
            draw(seed_of(5, 7), 4, {1001}, dtype), draw(seed_of(5, 7 + (int64_t(1) << 32)), 3, {1001}, dtype),
            draw(seed_of(5 + (int64_t(1) << 32), 7), 3, {1001}, dtype)})
        EXPECT_GT(other.ne(all).sum().item<int64_t>(), 900);
    }
}

TEST(CounterNumbers, DoNotDependOnTheNumberOfThreads) {
  const int before = at::get_num_threads();
  Tensors one, several;
  for (auto [threads, results] : {std::pair(1, &one), std::pair(3, &several)}) {
    at::set_num_threads(threads);
    *results = {uniforms(seed_of(1, 2), 0, {100003}), normals(seed_of(1, 2), 1, {100003}, at::kDouble)};
  }
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], several[i])) << i;
}

TEST(CounterNumbers, OfAUniformDistributionAreUniform) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor drawn = uniforms(seed_of(11, 13), 0, {many}, dtype);
    EXPECT_LT(distance(drawn, [](const at::Tensor& x) { return x; }), 1.95);
    EXPECT_NEAR(drawn.var().item<double>(), 1. / 12, 5 * std::sqrt(1. / 180 / many));
  }
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor drawn = uniforms(seed_of(11, 13), 1, {many}, dtype).to(at::kDouble);
    EXPECT_GE(drawn.min().item<double>(), 0);
    EXPECT_LT(drawn.max().item<double>(), 1);
    // Bits beyond the last are cut off.
    const double lost = std::ldexp(0.5, dtype == at::kBFloat16 ? -8 : dtype == at::kHalf ? -11 : -24);
    EXPECT_NEAR(drawn.mean().item<double>() + lost, 0.5, 5 * std::sqrt(1. / 12 / many));
  }
}

TEST(CounterNumbers, OfANormalDistributionAreNormal) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor drawn = normals(seed_of(17, 19), 0, {many}, dtype);
    EXPECT_LT(distance(drawn, [](const at::Tensor& x) { return (1 + at::erf(x / std::sqrt(2.))) / 2; }),
              1.95);
    EXPECT_TRUE(at::isfinite(drawn).all().item<bool>());
    EXPECT_GT(drawn.abs().max().item<double>(), 4);
  }
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor drawn = normals(seed_of(17, 19), 1, {many}, dtype).to(at::kDouble);
    EXPECT_NEAR(drawn.mean().item<double>(), 0, 5 / std::sqrt(double(many)));
    EXPECT_NEAR(drawn.square().mean().item<double>(), 1, 5 * std::sqrt(2. / many));
    EXPECT_NEAR(drawn.pow(4).mean().item<double>(), 3, 5 * std::sqrt(96. / many));
  }
}

TEST(CounterNumbers, StreamsSeedsAndNeighboursAreNotCorrelated) {
  const double most = 5 / std::sqrt(double(many));
  for (const auto& draw : {uniforms, normals}) {
    const at::Tensor one = draw(seed_of(23, 0), 0, {many}, at::kFloat);
    for (const at::Tensor& other :
         {draw(seed_of(23, 0), 1, {many}, at::kFloat), draw(seed_of(23, 4), 0, {many}, at::kFloat),
          draw(seed_of(24, 0), 0, {many}, at::kFloat)})
      EXPECT_LT(std::abs(correlation(one, other)), most);
    for (int64_t apart : {1, 2, 3, 4, 64}) {
      const at::Tensor first = one.slice(0, 0, many - apart), second = one.slice(0, apart);
      EXPECT_LT(std::abs(correlation(first, second)), most) << apart;
      EXPECT_LT(std::abs(correlation(first.square(), second.square())), most) << apart;
    }
  }
}

TEST(CounterSeed, IsDrawnFromTheGeneratorAndMovesItOnByAsMuchEachTime) {
  auto seed = [] { return find_op("tandem::counter_seed").typed<at::Tensor(c10::Device)>().call(c10::kCPU); };
  at::manual_seed(3);
  const at::Tensor one = seed(), two = seed(), after = at::rand({4});
  at::manual_seed(3);
  EXPECT_TRUE(at::equal(seed(), one) && at::equal(seed(), two) && at::equal(at::rand({4}), after));
  EXPECT_FALSE(at::equal(one, two));
  at::manual_seed(4);
  EXPECT_FALSE(at::equal(seed(), one));
}

TEST(CounterNumbers, FactsSayThatOnlyTheSeedIsDrawn) {
  EXPECT_TRUE(facts(find_op("tandem::counter_seed")).random);
  for (const char* op : {"tandem::counter_uniform", "tandem::counter_normal"})
    EXPECT_FALSE(facts(find_op(op)).random) << op;
}

TEST(WithCounterNumbers, PutsOneSeedBeforeAllDraws) {
  GraphWriter w;
  const Value x = w.input({8, 5}, at::kFloat);
  const Node drop = w.node("aten::native_dropout", {x, number(0.5), c10::IValue(true)});
  const Value noise = w.call("aten::rand_like", {x}), more = w.call("aten::randn_like", {x});
  w.graph.set_outputs({std::get<Value>(drop.results[0]), std::get<Value>(drop.results[1]), noise, more});
  w.graph.verify();
  const Counted counted = with_counter_numbers(w.graph, 3);
  counted.graph.verify();
  EXPECT_EQ(counted.graph.to_string(), Graph::parse(counted.graph.to_string()).to_string());
  EXPECT_TRUE(counted.left.empty());
  EXPECT_EQ(calls_of(counted.graph, "tandem::counter_seed"), 1u);
  EXPECT_EQ(counted.graph.outputs(), w.graph.outputs());
  const at::Tensor given = at::rand({8, 5}) + 1;
  at::manual_seed(9);
  const Tensors got = counted.graph.run({given});
  at::manual_seed(9);
  const at::Tensor seed = find_op("tandem::counter_seed").typed<at::Tensor(c10::Device)>().call(c10::kCPU);
  EXPECT_TRUE(at::equal(got[1], uniforms(seed, 0, {8, 5}) < 0.5));
  EXPECT_TRUE(at::equal(got[0], given * got[1] * 2));
  EXPECT_TRUE(at::equal(got[2], uniforms(seed, 1, {8, 5})));
  EXPECT_TRUE(at::equal(got[3], normals(seed, 2, {8, 5})));
}

TEST(WithCounterNumbers, LeavesWhatItCannotWriteAndWhatABackwardDraws) {
  GraphWriter w;
  const Value x = w.input({8}, at::kFloat);
  const Value order = w.call("aten::randperm", {number(int64_t(8))}), noise = w.call("aten::rand_like", {x});
  w.phase = Phase::Backward;
  w.graph.set_outputs({order, noise, w.call("aten::rand_like", {x})});
  const Counted counted = with_counter_numbers(w.graph, 2);
  counted.graph.verify();
  EXPECT_EQ(counted.left, (std::vector<std::string>{"aten::randperm", "aten::rand_like"}));
  EXPECT_EQ(calls_of(counted.graph, "aten::rand_like"), 1u);
  EXPECT_EQ(calls_of(counted.graph, "tandem::counter_uniform"), 1u);
}

TEST(WithCounterNumbers, LeavesAGraphAloneThatDrawsNothing) {
  GraphWriter w;
  w.graph.set_outputs({w.call("aten::sin", {w.input({8})})});
  EXPECT_EQ(with_counter_numbers(w.graph, 0).graph.to_string(), w.graph.to_string());
}

TEST(WithCounterNumbers, KeepsTheLayoutThatTheDrawHad) {
  GraphWriter w;
  const Value x = w.input({3, 4}, at::kFloat, {1, 3});
  w.graph.set_outputs({w.call("aten::rand_like", {x})});
  const Counted counted = with_counter_numbers(w.graph, 1);
  counted.graph.verify();
  at::manual_seed(9);
  const at::Tensor got = counted.graph.run({at::empty_strided({3, 4}, {1, 3})})[0];
  EXPECT_EQ(got.strides(), at::IntArrayRef({1, 3}));
  at::manual_seed(9);
  EXPECT_TRUE(at::equal(
      got,
      uniforms(find_op("tandem::counter_seed").typed<at::Tensor(c10::Device)>().call(c10::kCPU), 0, {3, 4})));
}

/// A draw, and another from the state that the first began in.
static Graph drawn_again(int64_t first, int64_t second, const char* op = "aten::rand",
                         const char* other = "aten::rand") {
  GraphWriter w;
  const Node once = w.node(op, {ints({first})});
  w.graph.nodes().pop_back();
  const Node reads = state_before(w.graph, once);
  w.graph.add_node(reads);
  w.graph.add_node(once);
  w.phase = Phase::Backward;
  Node& again = w.node(other, {ints({second})});
  again.state = std::get<Value>(reads.results[0]);
  const Value made = std::get<Value>(again.results[0]);
  w.graph.set_outputs({std::get<Value>(once.results[0]), made});
  return w.graph;
}

TEST(WithCounterNumbers, ADrawFromTheSameStateIsTheSameDraw) {
  const Counted counted = with_counter_numbers(drawn_again(6, 6), 1);
  counted.graph.verify();
  EXPECT_EQ(calls_of(counted.graph, "tandem::counter_seed"), 1u);
  EXPECT_EQ(calls_of(counted.graph, "tandem::generator_state"), 0u);
  for (const Node& node : counted.graph.nodes()) EXPECT_FALSE(node.state);
  const Tensors got = counted.graph.run({});
  EXPECT_TRUE(at::equal(got[0], got[1]));
}

TEST(WithCounterNumbers, ADrawOfOtherNumbersFromThatStateIsRefused) {
  EXPECT_THROW(with_counter_numbers(drawn_again(6, 8), 1), UnsupportedError);
  EXPECT_THROW(with_counter_numbers(drawn_again(6, 6, "aten::rand", "aten::randn"), 1), UnsupportedError);
}

}  // namespace tandem::counted
