// What is compiled later joins the entry, and is there for the next process.
#include "cache/order.h"
#include "cache/processes.h"

namespace tandem::test {
namespace {

using Added = Processes;

const Callable product = [](const Tensors& in) {
  return Tensors{in[0].sin() * in[1].exp(), in[0] * in[1] * in[1]};
};
Tensors two_leaves() { return {leaf({1, 2}), leaf({0.5, 0.25})}; }

TEST_F(Added, ExplainSavesBothHalvesAtOnce) {
  Compiled(product, options()).explain(two_leaves());
  EXPECT_COUNTERS(0u, 1u, 1u);
  next_process();
  const Tensors inputs = two_leaves();
  const Compiled loaded(product, strict());
  expect_same(train(loaded, inputs), train(product, inputs));
  const Explanation found = loaded.explain(inputs);
  EXPECT_COUNTERS(1u, 0u, 0u);
  expect_only_traced();
  Options off = options();
  off.cache.enabled = false;
  const Explanation fresh = Compiled(product, off).explain(inputs);
  for (Graph Explanation::* graph : {&Explanation::joint, &Explanation::forward, &Explanation::backward})
    EXPECT_EQ((found.*graph).to_string(), (fresh.*graph).to_string());
  EXPECT_EQ(found.contract.to_string(), fresh.contract.to_string());
  EXPECT_EQ(found.key, fresh.key);
  EXPECT_EQ(found.key_components, fresh.key_components);
  EXPECT_EQ(found.nodes_recorded, fresh.nodes_recorded);
  EXPECT_EQ(found.saved_bytes, fresh.saved_bytes);
  EXPECT_EQ(found.eager_saved_bytes, fresh.eager_saved_bytes);
}

/// The gradients of one output with respect to one input.
at::Tensor one_gradient(const Callable& fn, const Tensors& inputs, size_t output, size_t input) {
  return torch::autograd::grad({fn(inputs)[output].sum()}, {inputs[input]})[0];
}

TEST_F(Added, VariantsOfTheBackward) {
  const Tensors inputs = two_leaves();
  for (size_t variant = 0; variant < 4; ++variant) {
    SCOPED_TRACE(variant);
    next_process();
    const Compiled f(product, options());
    for (size_t known = 0; known < variant; ++known)
      EXPECT_TRUE(torch::equal(one_gradient(f, inputs, known / 2, known % 2),
                               one_gradient(product, inputs, known / 2, known % 2)));
    EXPECT_EQ(counter("backward_variant"), 0u);
    EXPECT_EQ(counter("cache_saved"), 0u);
    EXPECT_TRUE(torch::equal(one_gradient(f, inputs, variant / 2, variant % 2),
                             one_gradient(product, inputs, variant / 2, variant % 2)));
    EXPECT_EQ(counter("backward_variant"), 1u);
    EXPECT_EQ(counter("cache_saved"), 1u);
    EXPECT_EQ(counter("cache_hit"), variant > 0);
    EXPECT_EQ(stats().entries, 1u);
  }
}

/// The gradients of the sum of all outputs with respect to those inputs whose bits are set.
Tensors some_gradients(const Callable& fn, const Tensors& inputs, size_t wanted, bool create_graph = false) {
  Tensors asked;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (wanted >> i & 1) asked.push_back(inputs[i]);
  return torch::autograd::grad({fn(inputs)[0].sum()}, asked, {}, create_graph, create_graph);
}

const Callable sum_of_products = [](const Tensors& in) {
  at::Tensor sum = at::zeros({2});
  for (const at::Tensor& x : in) sum = sum + x.sin() * in[0];
  return Tensors{sum};
};

Tensors leaves(size_t count) {
  Tensors made;
  for (size_t i = 0; i < count; ++i) made.push_back(leaf({0.5f + float(i), 2.0f - float(i)}));
  return made;
}

TEST_F(Added, BackwardsBeyondTheMostGoAndComeAgain) {
  const Tensors inputs = leaves(7);
  static_assert(127 > most_backwards && 127 < 2 * most_backwards);
  const Compiled f(sum_of_products, options({.watched_calls = false}));
  auto expect_eager = [&](const Compiled& fn, size_t wanted) {
    expect_same(some_gradients(fn, inputs, wanted), some_gradients(sum_of_products, inputs, wanted));
  };
  for (size_t wanted = 1; wanted < 128; ++wanted) expect_eager(f, wanted);
  EXPECT_EQ(counter("backward_evicted"), 127 - most_backwards);
  expect_eager(f, 127);
  EXPECT_EQ(counter("backward_evicted"), 127 - most_backwards) << "the last ones are still there";
  expect_eager(f, 1);
  EXPECT_EQ(counter("backward_evicted"), 128 - most_backwards) << "the first is not, and is made again";

  next_process();
  const Compiled loaded(sum_of_products, options({.watched_calls = false}));
  for (size_t wanted = 128 - most_backwards + 1; wanted < 128; ++wanted) expect_eager(loaded, wanted);
  EXPECT_EQ(counter("backward_variant"), 0u);
  expect_eager(loaded, 2);
  EXPECT_EQ(counter("backward_variant"), 1u) << "an entry holds no more of them than memory does";
}

TEST_F(Added, OrdersBeyondTheMostLiveAsLongAsSomebodyNeedsThem) {
  const Tensors inputs = leaves(5);
  static_assert(31 > most_orders_above);
  const Compiled f(sum_of_products, options({.watched_calls = false}));
  auto first_of_all = [&](const Callable& fn) { return some_gradients(fn, inputs, 31, true); };
  const Tensors early = first_of_all(f), expected = first_of_all(sum_of_products);
  auto again = [&](const Tensors& gradients) {
    const at::Tensor sum = gradients[0].sum() + gradients[4].sum();
    return torch::autograd::grad({sum}, inputs, {}, true, true, /*allow_unused=*/true);
  };
  const Tensors second = again(early), second_expected = again(expected);
  auto some = [&](const Callable& fn, size_t wanted) { return some_gradients(fn, inputs, wanted, true); };
  for (size_t wanted = 1; wanted < 31; ++wanted) expect_same(some(f, wanted), some(sum_of_products, wanted));
  EXPECT_GT(counter("backward_evicted"), 0u);
  expect_same(again(early), again(expected));
  expect_same(again(second), again(second_expected));
  expect_same(first_of_all(f), expected);
}

// Both processes began when the entry had one backward; what either added stays.
TEST_F(Added, VariantsOfTwoProcessesAtOnce) {
  const Tensors inputs = two_leaves();
  const Compiled first(product, options()), second(product, options());
  first(inputs);
  second(inputs);
  one_gradient(first, inputs, 0, 0);
  one_gradient(second, inputs, 0, 1);
  next_process();
  const Compiled third(product, strict());
  one_gradient(third, inputs, 0, 0);
  one_gradient(third, inputs, 0, 1);
  EXPECT_COUNTERS(1u, 0u, 0u);
  expect_only_traced();
}

Tensors three_orders(const Callable& fn, const Tensors& inputs) {
  at::Tensor y = fn(inputs)[0].sum();
  Tensors all;
  for (int order = 0; order < 3; ++order) {
    Tensors gradients = torch::autograd::grad({y}, inputs, {}, true, true);
    y = gradients[0].pow(2).sum() + gradients[1].pow(2).sum();
    all.insert(all.end(), gradients.begin(), gradients.end());
  }
  return all;
}

TEST_F(Added, HigherOrders) {
  const Tensors inputs = two_leaves();
  train(Compiled(product, options()), inputs);
  EXPECT_COUNTERS(0u, 1u, 1u);
  next_process();
  const Tensors want = three_orders(Compiled(product, options()), inputs);
  EXPECT_GT(counter("compile_higher_order"), 0u);
  EXPECT_GT(counter("cache_saved"), 0u);
  next_process();
  expect_same(three_orders(Compiled(product, strict()), inputs), want);
  EXPECT_COUNTERS(1u, 0u, 0u);
  expect_only_traced();
  const Tensors eager = three_orders(product, inputs);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(torch::allclose(want[i], eager[i], 1e-4, 1e-5)) << i;
}

}  // namespace
}  // namespace tandem::test
