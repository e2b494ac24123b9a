// tandem::must_save and tandem::prefer_recompute: what a program marks is kept, or computed again, and
// nothing else is different.
#include "runtime/memory_fixture.h"

namespace tandem {
namespace {

using test::contains;
using test::expect_same_results;
using test::same_values;
using test::TensorFn;

at::Tensor random_leaf(std::vector<int64_t> sizes) { return torch::randn(sizes).requires_grad_(); }

size_t calls_of(const Graph& graph, const std::string& op) {
  return size_t(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                              [&](const Node& node) { return node.op.operator_name().name == op; }));
}

bool is_saved(const Explanation& explained, const std::string& op, const std::string& why = {}) {
  return std::any_of(explained.saved.begin(), explained.saved.end(),
                     [&](const SavedValue& saved) { return saved.op == op && contains(saved.why, why); });
}

const std::vector<Options>& ways() {
  static const std::vector<Options> all{{},
                                        {.backend = "debug"},
                                        {.partitioner = "min_cut"},
                                        {.partitioner = "min_cut", .memory_budget = 0},
                                        {.partitioner = "recompute_all"},
                                        {.partitioner = "save_all"}};
  return all;
}

/// A program that hands what it likes to `mark`.
using Markable = std::function<at::Tensor(const std::function<at::Tensor(at::Tensor)>& mark, at::Tensor x)>;

void expect_unmarked_results(const Markable& program) {
  const TensorFn plain = [&](const at::Tensor& x) { return program([](at::Tensor t) { return t; }, x); };
  const at::Tensor x = random_leaf({4, 8});
  for (const auto& mark : {must_save, prefer_recompute})
    for (const Options& options : ways()) {
      SCOPED_TRACE(options.partitioner + (mark == must_save ? ", must_save" : ", prefer_recompute"));
      auto fast = compile([&](const at::Tensor& in) { return program(mark, in); }, options);
      for (int call = 0; call < 3; ++call) expect_same_results(fast, plain, x, {}, /*twice=*/false);
      expect_same_results(fast, compile(plain, options), x);
      const Explanation explained = fast.explain(x);
      EXPECT_EQ(explained.eager_reason, "");
      for (const Graph* graph : {&explained.joint, &explained.forward, &explained.backward})
        EXPECT_EQ(calls_of(*graph, "tandem::must_save") + calls_of(*graph, "tandem::prefer_recompute"), 0u);
    }
}

}  // namespace

TEST(Marks, OutsideOfATraceAreTheTensorItself) {
  const at::Tensor x = random_leaf({3});
  for (const auto& mark : {must_save, prefer_recompute}) {
    EXPECT_TRUE(mark(x).is_same(x));
    EXPECT_FALSE(mark({}).defined());
  }
}

TEST(Marks, OfResultsChangeNothing) {
  expect_unmarked_results([](auto mark, at::Tensor x) { return mark(mark(x.sin()).exp() * x).tanh(); });
}

TEST(Marks, OfInputsAndOutputsChangeNothing) {
  expect_unmarked_results([](auto mark, at::Tensor x) { return mark(mark(x).exp()); });
}

TEST(Marks, OfViewsChangeNothing) {
  expect_unmarked_results([](auto mark, at::Tensor x) {
    return mark(x.exp().t()).sin().t() * mark(x.view({8, 4})).view({4, 8});
  });
}

TEST(Marks, OfWhatIsWrittenChangeNothing) {
  expect_unmarked_results([](auto mark, at::Tensor x) {
    at::Tensor y = mark(x.cos());
    y.add_(x);
    mark(y).narrow(1, 0, 3).add_(x.narrow(1, 3, 3));
    return mark(y).sin() * x;
  });
}

TEST(Marks, OfRandomNumbersChangeNothing) {
  expect_unmarked_results([](auto mark, at::Tensor x) {
    return mark(torch::dropout(mark(x.exp()), 0.5, true)).sin() * mark(torch::rand_like(x)) * x;
  });
}

TEST(Marks, OfWhatNobodyReadsOrHasNoGradientChangeNothing) {
  expect_unmarked_results([](auto mark, at::Tensor x) {
    mark(x.cos());
    at::Tensor scale;
    {
      at::NoGradGuard no_grad;
      scale = mark(x.abs().sum());
    }
    return mark(x.sin()) / scale;
  });
}

TEST(Marks, OfInputsLetThemBeWrittenAsInEager) {
  for (const auto& mark : {must_save, prefer_recompute}) {
    auto fast = compile([&](const at::Tensor& in) { return mark(mark(in * 2) + mark(in)); });
    const at::Tensor x = random_leaf({3});
    const at::Tensor given = x * 1, y = fast(given);
    given.mul_(3);
    EXPECT_TRUE(same_values(torch::autograd::grad({y.sum()}, {x})[0], torch::full({3}, 3.f)));
  }
}

TEST(Marks, F14_WhatMustBeSavedIsNotComputedAgainAtAnyBudget) {
  auto program = [](bool marked) {
    return [marked](const at::Tensor& x) {
      auto [values, places] = (x.exp() * x).topk(3);
      return (marked ? must_save(values) : values).sin().exp().sum();
    };
  };
  const at::Tensor x = random_leaf({64, 16});
  for (double budget : {0.0, 0.1}) {
    const Options options{.partitioner = "min_cut", .memory_budget = budget};
    auto fast = compile(program(true), options);
    const Explanation explained = fast.explain(x);
    EXPECT_EQ(calls_of(explained.backward, "aten::topk"), 0u);
    EXPECT_TRUE(is_saved(explained, "aten::topk", "marked must_save"));
    EXPECT_EQ(std::count_if(explained.saved.begin(), explained.saved.end(),
                            [](const SavedValue& saved) { return saved.op == "aten::topk"; }),
              2);
    EXPECT_TRUE(same_values(torch::autograd::grad({fast(x)}, {x})[0],
                            torch::autograd::grad({program(false)(x)}, {x})[0]));
  }
  const Options all{.partitioner = "recompute_all"};
  EXPECT_EQ(calls_of(compile(program(true), all).explain(x).backward, "aten::topk"), 0u);
  EXPECT_EQ(calls_of(compile(program(false), all).explain(x).backward, "aten::topk"), 1u);
}

TEST(Marks, F7_WhatIsRatherComputedAgainIsNotKept) {
  auto cube = [](bool marked) {
    return [marked](const at::Tensor& x) {
      const at::Tensor square = x * x;
      return (marked ? prefer_recompute(square) : square) * x;
    };
  };
  const at::Tensor x = random_leaf({8});
  for (const char* partitioner : {"default", "min_cut"}) {
    auto fast = compile(cube(true), {.partitioner = partitioner});
    EXPECT_EQ(fast.explain(x).saved_bytes, 0) << partitioner;
    EXPECT_EQ(fast.explain(x).forward.outputs().size(), 2u);
    EXPECT_EQ(compile(cube(false), {.partitioner = partitioner}).explain(x).saved_bytes, 32);
    EXPECT_TRUE(same_values(torch::autograd::grad({fast(x).sum()}, {x})[0],
                            torch::autograd::grad({cube(false)(x).sum()}, {x})[0]));
  }
}

TEST(Marks, AMaskIsComputedAgainFromTheGeneratorsState) {
  auto drop = [](const at::Tensor& x) {
    const auto [dropped, mask] = torch::native_dropout(prefer_recompute(x.sin()), 0.5, true);
    return prefer_recompute(dropped).sin() * x.cos();
  };
  const at::Tensor x = random_leaf({64, 256});
  for (const char* partitioner : {"default", "min_cut"}) {
    auto fast = compile(drop, {.partitioner = partitioner});
    expect_same_results(fast, drop, x, {}, /*twice=*/false);
    const Explanation explained = fast.explain(x);
    EXPECT_EQ(calls_of(explained.backward, "aten::native_dropout"), 1u);
    EXPECT_FALSE(is_saved(explained, "aten::native_dropout"));
    EXPECT_TRUE(is_saved(explained, "tandem::generator_state"));
  }
}

TEST(Marks, OfViewsHoldForTheirMemory) {
  auto program = [](const at::Tensor& x) {
    const at::Tensor made = x * x;
    prefer_recompute(made.t());
    return made.view({8, 4}).view({4, 8}) * x;
  };
  EXPECT_EQ(compile(program).explain(random_leaf({4, 8})).saved_bytes, 0);
}

TEST(Marks, WhatMustBeSavedIsNotComputedAgainInACheckpoint) {
  auto block = [](bool marked) {
    return [marked](const at::Tensor& x) {
      const at::Tensor dropped = torch::dropout(x.exp(), 0.5, true);
      const at::Tensor product = torch::mm(torch::dropout(dropped.sin(), 0.5, true), x.t());
      return (marked ? must_save(product) : product).sigmoid().tanh() + torch::rand({8, 8});
    };
  };
  const TensorFn plain = [&](const at::Tensor& x) {
    return block(false)(torch::dropout(x.cos(), 0.5, true));
  };
  const TensorFn marked = [&](const at::Tensor& x) {
    return checkpoint(block(true), torch::dropout(x.cos(), 0.5, true));
  };
  const TensorFn unmarked = [&](const at::Tensor& x) {
    return checkpoint(block(false), torch::dropout(x.cos(), 0.5, true));
  };
  const at::Tensor x = random_leaf({8, 8});
  for (const Options& options : ways()) {
    SCOPED_TRACE(options.partitioner);
    auto fast = compile(marked, options);
    expect_same_results(fast, plain, x, {}, /*twice=*/false);
    expect_same_results(fast, compile(plain, options), x);
    const Explanation explained = fast.explain(x);
    EXPECT_EQ(calls_of(explained.backward, "aten::mm"), 2u) << "those of the product's own gradients";
    EXPECT_TRUE(is_saved(explained, "aten::mm", "marked must_save"));
    if (options.partitioner == "default") {
      EXPECT_EQ(calls_of(compile(unmarked, options).explain(x).backward, "aten::mm"), 3u);
    }
  }
}

TEST(Marks, AreToldToAUsersPartitioner) {
  size_t saved = 0, again = 0;
  auto fast = compile([](const at::Tensor& x) { return prefer_recompute(must_save(x.exp()).sin()).tanh(); },
                      {.partition_fn = Partitioner([&](const Joint& joint, const PartitionContext& context) {
                         saved = context.marked_must_save.size();
                         again = context.marked_prefer_recompute.size();
                         return partition_default(joint, context);
                       })});
  fast(random_leaf({4}));
  EXPECT_EQ(saved, 1u);
  EXPECT_EQ(again, 1u);
}

TEST(Marks, AreNotExported) {
  const Exported whole =
      export_joint([](const at::Tensor& x) { return prefer_recompute(must_save(x.exp()).sin()).sum(); },
                   {random_leaf({4})});
  EXPECT_EQ(calls_of(whole.graph, "tandem::must_save") + calls_of(whole.graph, "tandem::prefer_recompute"),
            0u);
}

}  // namespace tandem
