// What happens to a compiled object, or to the registries, while other threads call it.
#include "threads/threads.h"

#include <tandem/partition.h>

#include <future>

namespace tandem {
namespace {

using test::leaf;
using test::on_all_threads;
using test::right;
using test::same_values;
using test::thread_count;
using test::wave;

/// Thread 0 does `meanwhile` again and again; the others call, differentiate and differentiate twice, on
/// several signatures.
int wrong_while(const Compiled& fast, const std::function<void(int)>& meanwhile, int rounds = 6) {
  std::atomic<int> wrong = 0, busy = thread_count - 1;
  on_all_threads([&](int t) {
    if (t == 0) {
      for (int i = 0; busy > 0; ++i) meanwhile(i);
      return;
    }
    struct Done {
      std::atomic<int>& busy;
      ~Done() { --busy; }
    } done{busy};
    for (int i = 0; i < rounds; ++i) {
      wrong += !right(fast, wave, 1 + (t + i) % 3);
      at::Tensor x = leaf({2}), y = fast({x, x})[0];
      at::Tensor first = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0],
                 want = torch::autograd::grad({wave({x, x})[0].sum()}, {x}, {}, true, true)[0];
      wrong += !at::allclose(torch::autograd::grad({first.sum()}, {x})[0],
                             torch::autograd::grad({want.sum()}, {x})[0], 1e-4, 1e-5);
    }
  });
  return wrong;
}

TEST(Meanwhile, Reset) {
  EXPECT_EQ(wrong_while(Compiled(wave, {}),
                        [](int) {
                          reset();
                          std::this_thread::yield();
                        }),
            0);
}

TEST(Meanwhile, Explain) {
  Compiled fast(wave, {});
  std::atomic<int> other_keys = 0;
  const std::string key = Compiled(wave, {}).explain({leaf({3}), leaf({3})}).key;
  EXPECT_EQ(wrong_while(fast,
                        [&](int) {
                          Explanation e = fast.explain({leaf({3}), leaf({3})});
                          test::verify(e);
                          other_keys += e.key != key;
                        }),
            0);
  EXPECT_EQ(other_keys, 0);
}

TEST(Meanwhile, Counters) {
  EXPECT_EQ(wrong_while(Compiled(wave, {}), [](int) { counters(); }), 0);
}

TEST(Meanwhile, EvictionOfAllButOne) {
  testing::internal::CaptureStderr();
  const uint64_t evicted = test::counter("signature_evicted");
  const int wrong =
      wrong_while(Compiled(wave, {.max_signatures = 1}), [](int) { std::this_thread::yield(); });
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(test::counter("signature_evicted"), evicted);
}

TEST(Meanwhile, CopiesComeAndGo) {
  Compiled fast(wave, {});
  EXPECT_EQ(wrong_while(fast,
                        [&](int) {
                          Compiled copy = fast;
                          copy({leaf({2}), leaf({2})});
                        }),
            0);
}

TEST(Meanwhile, EveryAssumptionIsChecked) {
  Compiled fast(wave, {.debug_asserts = true});
  EXPECT_EQ(wrong_while(fast, [&](int) { fast({leaf({3}), leaf({3})}); }, 3), 0);
}

/// One variant of a backward is being compiled and does not come to an end; what is compiled already runs all
/// the same.
TEST(Meanwhile, OneBackwardCompilesAnotherRuns) {
  std::atomic<int> compiles = 0;
  std::promise<void> started, go_on;
  std::shared_future<void> gone_on = go_on.get_future().share();
  const Compiler slow_second = Compiler([&](const Graph& graph, const CompileContext& context) {
    if (++compiles == 2) {
      started.set_value();
      gone_on.wait_for(std::chrono::minutes(1));
    }
    return find_backend("eager")->compile(graph, context);
  });
  const Compiled fast([](const Tensors& in) { return Tensors{in[0].sin(), in[0].cos()}; },
                      {.watched_calls = false, .bw_compiler = slow_second});
  at::Tensor x = leaf({3}), y = leaf({3});
  auto of_first = [&](const at::Tensor& at) { return torch::autograd::grad({fast({at})[0].sum()}, {at})[0]; };
  of_first(x);
  std::thread other([&] {
    const Tensors results = fast({y});
    torch::autograd::grad({(results[0] + results[1]).sum()}, {y});
  });
  started.get_future().wait();
  auto meanwhile = std::async(std::launch::async, [&] { return of_first(x); });
  EXPECT_EQ(meanwhile.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  go_on.set_value();
  other.join();
  EXPECT_TRUE(same_values(meanwhile.get(), x.cos()));
}

struct Renamed : Backend {
  std::string name() const override { return "tandem_threads"; }
  std::string version() const override { return "1"; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    return find_backend("eager")->compile(graph, context);
  }
};

/// Registered passes stay, so each of these registers one and only one.
TEST(Meanwhile, Registrations) {
  register_backend(std::make_shared<Renamed>());
  std::atomic<bool> once = false;
  auto passed = std::make_shared<std::atomic<int>>(0);
  std::atomic<int> wrong = 0;
  on_all_threads([&](int t) {
    for (int i = 0; i < 4; ++i) {
      if (t == 0) {
        register_backend(std::make_shared<Renamed>());
        backends();
        register_partitioner("tandem_threads",
                             Partitioner([](const Joint& joint, const PartitionContext& context) {
                               return partition_default(joint, context);
                             }));
        register_decomposition("aten::_foobar",
                               Decomposition([](Graph&, const Node&) { return std::vector<Value>(); }));
        if (!once.exchange(true))
          register_pass(Stage::Joint, Pass([passed](Graph graph) {
                          ++*passed;
                          return graph;
                        }));
      } else {
        wrong += !right(Compiled(wave, {.backend = "tandem_threads"}), wave, t);
      }
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(right(Compiled(wave, {}), wave, 3));
  EXPECT_GT(*passed, 0);
}

TEST(Meanwhile, AModuleIsTrainedAndEvaluated) {
  torch::nn::Sequential model(torch::nn::Linear(3, 3), torch::nn::Tanh());
  auto fast = compile(model);
  std::atomic<int> wrong = 0;
  on_all_threads([&](int t) {
    torch::AutoGradMode grad(t % 2);
    for (int i = 0; i < 5; ++i) {
      at::Tensor x = torch::randn({2 + t % 3, 3});
      at::Tensor got = fast(x), want = model->forward(x);
      wrong += !same_values(got, want);
      if (t % 2)
        wrong += !test::same_all(torch::autograd::grad({got.sum()}, model->parameters()),
                                 torch::autograd::grad({want.sum()}, model->parameters()));
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Meanwhile, TypedFunctionsGetOtherNumbers) {
  auto fast = compile([](const at::Tensor& x, int64_t n, double scale) { return x.pow(n) * scale; });
  std::atomic<int> wrong = 0;
  on_all_threads([&](int t) {
    for (int i = 0; i < 5; ++i) {
      at::Tensor x = leaf({3});
      wrong += !same_values(torch::autograd::grad({fast(x, 1 + (t + i) % 4, 0.5).sum()}, {x})[0],
                            torch::autograd::grad({(x.pow(1 + (t + i) % 4) * 0.5).sum()}, {x})[0]);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Meanwhile, ObjectsInsideEachOtherAreCalledFromBothSides) {
  Compiled inner([](const Tensors& in) { return Tensors{in[0].sin()}; }, {});
  Compiled outer([&](const Tensors& in) { return Tensors{inner({in[0] * 2})[0] + inner({in[0]})[0]}; }, {});
  std::atomic<int> wrong = 0;
  on_all_threads([&](int t) {
    for (int i = 0; i < 4; ++i) {
      at::Tensor x = leaf({1 + i});
      wrong += !same_values(t % 2 ? outer({x})[0] : inner({x})[0], t % 2 ? (x * 2).sin() + x.sin() : x.sin());
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tandem
