// Backwards of one object on many threads: variants, orders, and graphs that wander from thread to thread.
#include "threads/threads.h"

#include <mutex>

namespace tandem {
namespace {

using test::leaf;
using test::on_all_threads;
using test::same_all;
using test::same_values;
using test::thread_count;
using test::wave;

Tensors two_outputs(const Tensors& in) { return {(in[0] * in[1]).tanh(), in[0].sin() * in[2]}; }

/// One of eight combinations of outputs that get a gradient and inputs that want one.
Tensors gradients_of_kind(int kind, const Tensors& in, const Tensors& out) {
  const Tensors sources = kind % 3 == 0 ? Tensors{out[0]} : kind % 3 == 1 ? Tensors{out[1]} : out;
  const Tensors wanted = kind % 2 ? Tensors{in[0]} : in;
  const Tensors tangents(sources.size(), kind < 4 ? torch::ones(3) : torch::ones({}).expand({3}));
  return torch::autograd::grad(sources, wanted, tangents, /*retain_graph=*/true, /*create_graph=*/false,
                               /*allow_unused=*/true);
}

TEST(ThreadsAndDerivatives, VariantsAreMadeWhileOthersRun) {
  Compiled fast(two_outputs, {});
  const uint64_t variants = test::counter("backward_variant");
  std::atomic<int> wrong = 0;
  on_all_threads([&](int t) {
    Tensors in = {leaf({3}), leaf({3}), leaf({3})};
    for (int i = 0; i < thread_count; ++i) {
      const int kind = (t + i) % thread_count;
      wrong += !same_all(gradients_of_kind(kind, in, fast(in)), gradients_of_kind(kind, in, two_outputs(in)));
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(test::counter("backward_variant"), variants);
  EXPECT_LE(test::counter("backward_variant"), variants + thread_count);
}

TEST(ThreadsAndDerivatives, VariantsOfOneCall) {
  Compiled fast(two_outputs, {});
  Tensors in = {leaf({3}), leaf({3}), leaf({3})}, got = fast(in), want = two_outputs(in);
  std::atomic<int> wrong = 0;
  on_all_threads(
      [&](int t) { wrong += !same_all(gradients_of_kind(t, in, got), gradients_of_kind(t, in, want)); });
  EXPECT_EQ(wrong, 0);
}

/// Differentiates a sum as often as `order` says.
at::Tensor derivative(at::Tensor y, const at::Tensor& x, int order) {
  for (int n = 1; n <= order; ++n)
    y = torch::autograd::grad({y.sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/n < order)[0];
  return y;
}

TEST(ThreadsAndDerivatives, EveryOrderAtOnce) {
  const Callable fn = [](const Tensors& in) { return Tensors{in[0].sin() * in[0].exp()}; };
  Compiled fast(fn, {});
  std::atomic<int> wrong = 0;
  on_all_threads([&](int t) {
    for (int i = 0; i < 3; ++i) {
      at::Tensor x = torch::randn({4}, at::kDouble).requires_grad_();
      const int order = 1 + (t + i) % 3;
      wrong +=
          !at::allclose(derivative(fast({x})[0], x, order), derivative(fn({x})[0], x, order), 1e-10, 1e-12);
    }
  });
  EXPECT_EQ(wrong, 0);
}

/// A place where threads leave a graph for another thread.
struct Shelf {
  std::mutex mutex;
  std::vector<std::pair<at::Tensor, at::Tensor>> graphs;  ///< input and output

  void put(at::Tensor x, at::Tensor y) {
    std::lock_guard lock(mutex);
    graphs.emplace_back(std::move(x), std::move(y));
  }
  std::optional<std::pair<at::Tensor, at::Tensor>> take() {
    std::lock_guard lock(mutex);
    if (graphs.empty()) return std::nullopt;
    auto graph = std::move(graphs.back());
    graphs.pop_back();
    return graph;
  }
};

/// Every other thread makes graphs with `put_one(shelf)`; the rest take them and ask `is_right(x, y)`.
void make_here_and_differentiate_there(
    int rounds, const std::function<void(Shelf&)>& put_one,
    const std::function<bool(const at::Tensor&, const at::Tensor&)>& is_right) {
  Shelf shelf;
  std::atomic<int> wrong = 0, done = 0;
  on_all_threads([&](int t) {
    if (t % 2) {
      for (int i = 0; i < rounds; ++i) put_one(shelf);
      return;
    }
    while (done < rounds * thread_count / 2) {
      auto graph = shelf.take();
      if (!graph) {
        std::this_thread::yield();
        continue;
      }
      wrong += !is_right(graph->first, graph->second);
      ++done;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadsAndDerivatives, GraphsOfOneThreadAreDifferentiatedByAnother) {
  Compiled fast(wave, {});
  auto put_one = [&](Shelf& shelf) {
    at::Tensor x = leaf({3});
    shelf.put(x, fast({x, x})[0]);
  };
  make_here_and_differentiate_there(6, put_one, [](const at::Tensor& x, const at::Tensor& y) {
    return same_all(torch::autograd::grad({y.sum()}, {x}),
                    torch::autograd::grad({wave({x, x})[0].sum()}, {x}));
  });
}

TEST(ThreadsAndDerivatives, AnObjectIsGoneWhenItsGraphIsDifferentiatedElsewhere) {
  auto put_one = [](Shelf& shelf) {
    at::Tensor x = leaf({3}), scale = leaf({3}, false);
    Compiled fast([scale](const Tensors& in) { return Tensors{(in[0] * scale.sigmoid()).tanh()}; }, {});
    at::Tensor y = fast({x})[0];
    // The other side knows only x and y: what it expects of them is kept beside.
    x.mutable_grad() = torch::autograd::grad({(x * scale.sigmoid()).tanh().sum()}, {x})[0];
    shelf.put(x, y);
  };
  make_here_and_differentiate_there(3, put_one, [](const at::Tensor& x, const at::Tensor& y) {
    return bool(same_values(torch::autograd::grad({y.sum()}, {x})[0], x.grad()));
  });
}

TEST(ThreadsAndDerivatives, GradientsGatherInOneParameter) {
  at::Tensor weight = torch::ones(3).requires_grad_();
  Compiled fast([&](const Tensors& in) { return Tensors{in[0] * weight}; }, {});
  constexpr int rounds = 10;
  // Small whole numbers add up to the same in every order.
  on_all_threads([&](int t) {
    for (int i = 0; i < rounds; ++i) fast({torch::full(3, double(t + 1))})[0].sum().backward();
  });
  EXPECT_TRUE(
      same_values(weight.grad(), torch::full(3, double(rounds * thread_count * (thread_count + 1) / 2))));
}

}  // namespace
}  // namespace tandem
