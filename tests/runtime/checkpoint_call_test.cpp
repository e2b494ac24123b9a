// tandem::checkpoint, compiled and not: the gradients of the plain function, with less kept.
#include "runtime/memory_fixture.h"
#include "support/autocast.h"

#include <thread>

namespace tandem {
namespace {

using test::Block;
using test::contains;
using test::expect_same_results;
using test::message;
using test::same_values;
using test::TensorFn;

at::Tensor random_leaf(std::vector<int64_t> sizes) { return torch::randn(sizes).requires_grad_(); }

/// The same program twice: with `checkpoint`, and with plain calls. Of a compiled function gradients of
/// second order meet on the caller's side, which is another order than eager's.
template <class Program>
void expect_plain_results(const Program& program, const Tensors& leaves = {}) {
  auto plain = [](auto fn, const auto&... inputs) { return fn(inputs...); };
  auto checkpointed = [](auto fn, const auto&... inputs) { return checkpoint(fn, inputs...); };
  const TensorFn want = [&](const at::Tensor& x) { return program(plain, x); };
  const TensorFn eager = [&](const at::Tensor& x) { return program(checkpointed, x); };
  const at::Tensor x = random_leaf({4, 8});
  {
    SCOPED_TRACE("as it is");
    expect_same_results(eager, want, x, leaves);
  }
  for (const char* partitioner : {"default", "min_cut", "recompute_all", "save_all"}) {
    SCOPED_TRACE(partitioner);
    auto fast = compile(eager, {.partitioner = partitioner});
    for (int call = 0; call < 3; ++call) expect_same_results(fast, want, x, leaves, /*twice=*/false);
    expect_same_results(fast, compile(want, {.partitioner = partitioner}), x, leaves);
    EXPECT_EQ(fast.explain(x).eager_reason, "");
  }
}

int64_t kept_bytes(const TensorFn& run, const at::Tensor& x, const char* partitioner) {
  return compile(run, {.partitioner = partitioner}).explain(x).saved_bytes;
}

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

WeakStorage memory_of(const at::Tensor& tensor) { return WeakStorage(tensor.storage().getWeakStorageImpl()); }

}  // namespace

TEST(Checkpoint, OfAModuleHasItsGradientsAndNumbers) {
  Block first, second;
  Tensors leaves = first->parameters();
  for (const at::Tensor& parameter : second->parameters()) leaves.push_back(parameter);
  expect_plain_results(
      [&](auto call, const at::Tensor& x) {
        const at::Tensor y = call(first, torch::dropout(x, 0.2, true)) * torch::rand_like(x);
        return call(second, y.tanh());
      },
      leaves);
}

TEST(Checkpoint, OfASharedModuleSumsItsGradientsInTheSameOrder) {
  Block block;
  expect_plain_results(
      [&](auto call, const at::Tensor& x) {
        return call(block, call(block, block(x)) + x) * call(block, x.sin());
      },
      block->parameters());
}

TEST(Checkpoint, InsideOfAnotherIsOne) {
  Block inner;
  expect_plain_results(
      [inner](auto call, const at::Tensor& x) {
        auto outer = [inner, call](const at::Tensor& y) {
          return torch::dropout(call(inner, y.exp()), 0.5, true).sigmoid() * y;
        };
        return call(outer, x.sin());
      },
      inner->parameters());
}

TEST(Checkpoint, TakesAndReturnsSeveral) {
  expect_plain_results([](auto call, const at::Tensor& x) {
    auto both = [](const at::Tensor& a, const at::Tensor& b) { return Tensors{a.exp() * b, (a * b).tanh()}; };
    auto list = [](const Tensors& in) { return in[0].exp() * in[1].sin(); };
    return call(list, call(both, x, x.cos()));
  });
}

TEST(Checkpoint, MayWriteWhatItMade) {
  expect_plain_results([](auto call, const at::Tensor& x) {
    auto writes = [](const at::Tensor& a) {
      at::Tensor b = a.sin().mul_(a);
      b.narrow(1, 0, 2).add_(a.narrow(1, 2, 2).exp());
      return b.relu_() * a;
    };
    return call(writes, x.cos());
  });
}

TEST(Checkpoint, ReadsWhatItCaptured) {
  expect_plain_results([](auto call, const at::Tensor& x) {
    const at::Tensor other = x.cos();
    return call([other](const at::Tensor& a) { return (a * other).exp() * other; }, x.sin()) + other;
  });
}

TEST(Checkpoint, HasHooksOnItsInputsOnce) {
  auto halves = [](const at::Tensor& a) {
    a.register_hook([](at::Tensor gradient) { return gradient / 2; });
    return a.exp().sin() * a;
  };
  auto plain = [&](const at::Tensor& x) {
    const at::Tensor y = x.cos();
    return halves(y) * y;
  };
  auto checkpointed = [&](const at::Tensor& x) {
    const at::Tensor y = x.cos();
    return checkpoint(halves, y) * y;
  };
  const at::Tensor x = random_leaf({4, 8});
  expect_same_results(checkpointed, plain, x);
  expect_same_results(compile(checkpointed), plain, x, {}, /*twice=*/false);
}

TEST(Checkpoint, MayTakeAGradientItself) {
  auto penalty = [](const at::Tensor& a) {
    return torch::autograd::grad({a.sin().exp().sum()}, {a}, {}, true, true)[0].square();
  };
  const at::Tensor x = random_leaf({4, 8});
  expect_same_results([&](const at::Tensor& in) { return checkpoint(penalty, in.tanh()); },
                      [&](const at::Tensor& in) { return penalty(in.tanh()); }, x);
}

TEST(Checkpoint, IsAutocastAgainAsItWas) {
  Block block;
  auto run = [&](auto call) -> TensorFn {
    return [&, call](const at::Tensor& x) {
      test::Autocast autocast(at::kBFloat16);
      return call(block, x).to(at::kFloat);
    };
  };
  const TensorFn want = run([](Block b, const at::Tensor& x) { return b(x); });
  const TensorFn eager = run([](Block b, const at::Tensor& x) { return checkpoint(b, x); });
  const at::Tensor x = random_leaf({4, 8});
  expect_same_results(eager, want, x, block->parameters());
  expect_same_results(compile(eager), want, x, block->parameters(), /*twice=*/false);
}

TEST(Checkpoint, KeepsNothingOfWhatItComputes) {
  WeakStorage made{c10::intrusive_ptr<c10::StorageImpl>()};
  const at::Tensor x = random_leaf({4, 8});
  const at::Tensor y = checkpoint(
      [&made](const at::Tensor& a) {
        const at::Tensor middle = a.exp();
        if (made.expired()) made = memory_of(middle);
        return middle.sin() * a;
      },
      x);
  EXPECT_TRUE(made.expired());
  y.sum().backward();
  EXPECT_TRUE(same_values(x.grad(), torch::autograd::grad({(x.exp().sin() * x).sum()}, {x})[0]));
}

TEST(Checkpoint, InsideOfAnotherKeepsNotEvenItsInputs) {
  WeakStorage made{c10::intrusive_ptr<c10::StorageImpl>()};
  const at::Tensor x = random_leaf({4, 8});
  auto inner = [](const at::Tensor& a) { return a.exp().sin(); };
  const at::Tensor y = checkpoint(
      [&](const at::Tensor& a) {
        const at::Tensor middle = a.cos();
        if (made.expired()) made = memory_of(middle);
        return checkpoint(inner, middle).sigmoid();
      },
      x);
  EXPECT_TRUE(made.expired());
  y.sum().backward();
  EXPECT_TRUE(same_values(x.grad(), torch::autograd::grad({inner(x.cos()).sigmoid().sum()}, {x})[0]));
}

TEST(Checkpoint, CompiledKeepsWhatEagersKeeps) {
  Block first(64), second(64);
  const TensorFn run = [&](const at::Tensor& x) {
    return checkpoint(second, checkpoint(first, x).tanh()).sum();
  };
  const TensorFn plain = [&](const at::Tensor& x) { return second(first(x).tanh()).sum(); };
  const at::Tensor x = random_leaf({32, 64});
  const int64_t between = 32 * 64 * 4, states = 2 * test::state().numel();
  for (const char* partitioner : {"default", "min_cut"}) {
    EXPECT_EQ(kept_bytes(run, x, partitioner), between + states) << partitioner;
    EXPECT_GT(kept_bytes(plain, x, partitioner), 4 * between) << partitioner;
  }
}

TEST(Checkpoint, InsideOfAnotherIsComputedAgainTwice) {
  auto inner = [](const at::Tensor& a) { return a.exp().sin(); };
  auto outer = [inner](const at::Tensor& a) { return checkpoint(inner, checkpoint(inner, a)).tanh(); };
  const Explanation explained =
      compile([outer](const at::Tensor& x) { return checkpoint(outer, x).sum(); }).explain(random_leaf({8}));
  const auto& nodes = explained.backward.nodes();
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                          [](const Node& node) { return node.op.operator_name().name == "aten::exp"; }),
            4);
}

TEST(Checkpoint, WithoutGradientsIsAPlainCall) {
  int calls = 0;
  auto counted = [&](const at::Tensor& a) { return ++calls, a.sin(); };
  EXPECT_FALSE(checkpoint(counted, torch::ones(3)).requires_grad());
  at::NoGradGuard no_grad;
  EXPECT_FALSE(checkpoint(counted, random_leaf({3})).requires_grad());
  EXPECT_EQ(calls, 2);
}

TEST(Checkpoint, IsGoneThroughTwiceWhereTheHistoryIsRetained) {
  int calls = 0;
  const at::Tensor x = random_leaf({3});
  const at::Tensor y = checkpoint([&](const at::Tensor& a) { return ++calls, a.exp().sin(); }, x).sum();
  const at::Tensor first = torch::autograd::grad({y}, {x}, {}, true)[0],
                   again = torch::autograd::grad({y}, {x})[0];
  EXPECT_TRUE(same_values(first, again));
  EXPECT_EQ(calls, 3) << "the first call, and one for each backward";
  EXPECT_NE(message([&] { torch::autograd::grad({y}, {x}); }), "");
}

TEST(Checkpoint, OnAnotherThreadDrawsAgain) {
  const at::Tensor x = random_leaf({16});
  auto drop = [](const at::Tensor& a) { return torch::dropout(a.exp(), 0.5, true).sin(); };
  torch::manual_seed(1);
  const at::Tensor want = torch::autograd::grad({drop(x).sum()}, {x})[0];
  torch::manual_seed(1);
  const at::Tensor y = checkpoint(drop, x).sum();
  at::Tensor got;
  std::thread([&] { got = torch::autograd::grad({y}, {x})[0]; }).join();
  EXPECT_TRUE(same_values(got, want));
}

TEST(Checkpoint, RefusesWhatIsNotTheSameAgain) {
  const at::Tensor x = random_leaf({3});
  int calls = 0;
  auto other_count = [&](const at::Tensor& a) { return calls++ ? a.exp().sin() : a.sin(); };
  auto other_sizes = [&](const at::Tensor& a) { return (calls++ ? a : a.repeat(2)).sin().sum(); };
  const at::Tensor first = checkpoint(other_count, x).sum();
  EXPECT_TRUE(contains(message([&] { first.backward(); }), "the same each time"));
  calls = 0;
  const at::Tensor second = checkpoint(other_sizes, x);
  EXPECT_TRUE(contains(message([&] { second.backward(); }), "the same each time"));
}

TEST(Checkpoint, RefusesWhatWasWrittenSince) {
  const at::Tensor x = random_leaf({3});
  const at::Tensor input = x * 2;
  const at::Tensor y = checkpoint([](const at::Tensor& a) { return a.sin(); }, input).sum();
  input.mul_(2);
  EXPECT_TRUE(contains(message([&] { y.backward(); }), "modified by an inplace operation"));
  const at::Tensor z = checkpoint(
      [](const at::Tensor& a) {
        at::Tensor b = a.exp();
        return b.add_(1);
      },
      x);
  EXPECT_TRUE(contains(message([&] { z.sum().backward(); }), "modified by an inplace operation"));
}

}  // namespace tandem
