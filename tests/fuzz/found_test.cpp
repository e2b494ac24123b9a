// Programs that random search found, about views, writes and what autograd knows of them; compared as the
// search compares them.
#include "fuzz/found.h"

#include <numeric>

namespace tandem {
namespace {

using found::numbers;
using found::one_leaf;
using fuzz::Scene;
using Given = std::function<Scene()>;

/// All given tensors are arguments. Several seeds, since gradients of a random choice of outputs are
/// compared.
void expect_same(const Given& given, const std::function<Tensors(Tensors)>& run, bool higher_orders = false,
                 const fuzz::Setup& setup = {}) {
  for (uint64_t data = 1; data <= 8; ++data) {
    auto scene = [&](uint64_t seed, const Scene*) {
      torch::manual_seed(seed);
      return given();
    };
    std::vector<size_t> arguments(given().pool.size());
    std::iota(arguments.begin(), arguments.end(), 0);
    found::expect_alike({scene, arguments, run, data, higher_orders}, setup);
  }
}

Scene one_computed(at::IntArrayRef sizes) {
  at::Tensor leaf = numbers(sizes).requires_grad_();
  return {{leaf.clone()}, {leaf}};
}
Scene one_plain(at::Tensor tensor) { return {{std::move(tensor)}, {}}; }

TEST(Found, AViewOfATensorThatIsDetachedInPlaceTakesNoWrites) {
  expect_same([] { return one_leaf({3}); },
              [](Tensors v) {
                at::Tensor y = v[0].clone(), z = y.unsqueeze(0);
                y.detach_();
                return Tensors{z};
              });
}

TEST(Found, AGradientThatLeadsNowhereIsNotRefusedWithOthers) {
  auto two = [] {
    Scene scene = one_leaf({2});
    scene.leaves.push_back(numbers({2}).requires_grad_());
    scene.pool.push_back(scene.leaves[1].clone());
    return scene;
  };
  expect_same(two, [](Tensors v) {
    v[1].mul_(v[1]);
    at::Tensor y;
    {
      at::NoGradGuard no_grad;
      y = v[0].transpose(0, -1);
    }
    at::Tensor z = at::roll(y, {0}, {0});
    return Tensors{z, z};
  });
  expect_same([] { return one_leaf({2, 2}); },
              [](Tensors v) {
                at::Tensor a = v[0].exp(), b;
                {
                  at::NoGradGuard no_grad;
                  b = a.unsqueeze(1);
                }
                at::Tensor c = v[0].relu(), d = b.select(2, 1);
                c.exp_();
                return Tensors{c, d};
              });
}

TEST(Found, AGradientInsideAfterAWriteThatNobodyReads) {
  auto three = [] {
    Scene scene = one_computed({});
    scene.pool.push_back(scene.pool[0].unsqueeze(0));
    scene.pool.push_back(scene.leaves.emplace_back(numbers({}).requires_grad_()));
    return scene;
  };
  expect_same(three, [](Tensors v) {
    at::Tensor y = v[1] * v[2], z = v[1].logical_and_(v[2]);
    (void)torch::autograd::grad({y.sum()}, {v[1]}, {}, true, false, true);
    return Tensors{z};
  });
}

TEST(Found, AViewStartsToRequireGrad) {
  auto expanded = [] { return one_plain(numbers({1, 2}).expand({1, 2})); };
  expect_same(expanded, [](Tensors v) {
    v[0].requires_grad_();
    at::Tensor y;
    {
      at::NoGradGuard no_grad;
      y = v[0].unbind(1)[1];
    }
    return Tensors{y.to(at::kFloat)};
  });
  expect_same(expanded, [](Tensors v) {
    v[0].requires_grad_();
    at::Tensor y;
    {
      at::NoGradGuard no_grad;
      y = v[0].unsqueeze(1);
    }
    y.clamp_(-1, 1);
    return Tensors{y};
  });
  expect_same(expanded, [](Tensors v) {
    at::Tensor y = v[0].permute({1, 0});
    v[0].requires_grad_();
    y.uniform_();
    return Tensors{y};
  });
}

TEST(Found, AnInputStartsToRequireGradWhileAnotherIsAViewOfIt) {
  auto two = [] {
    at::Tensor x = numbers({2});
    return Scene{{x, x.slice(0, 1)}, {}};
  };
  expect_same(two, [](Tensors v) {
    v[0].requires_grad_();
    return Tensors{at::sin(v[1])};
  });
  expect_same(two, [](Tensors v) {
    v[0].requires_grad_();
    return Tensors{v[1].narrow(0, 0, 1)};
  });
}

TEST(Found, AViewOfALeafThatIsItselfAView) {
  auto leaf_view = [] {
    at::Tensor x = numbers({1}).expand({2}).requires_grad_();
    return Scene{{x, x.unsqueeze(0)}, {x}};
  };
  expect_same(leaf_view, [](Tensors v) {
    at::Tensor y = v[1].view({-1}), z;
    {
      at::NoGradGuard no_grad;
      z = y.chunk(2, 0)[1];
    }
    z.sin_();
    return Tensors{v[1]};
  });
  auto sliced = [] {
    at::Tensor x = numbers({1, 1}).expand({1, 1}).requires_grad_();
    return Scene{{x, numbers({1}), x.slice(0, 1)}, {x}};
  };
  expect_same(sliced, [](Tensors v) {
    {
      at::NoGradGuard no_grad;
      v[2].mul_(2);
    }
    return Tensors{at::matmul(v[2], v[1])};
  });
}

TEST(Found, AViewOfAViewWhoseBaseWasWrittenMeanwhile) {
  expect_same([] { return one_computed({2, 2}); },
              [](Tensors v) {
                at::Tensor y = v[0].permute({1, 0});
                v[0].add_(1);
                return Tensors{y.unsqueeze(1)};
              });
  expect_same([] { return one_leaf({2, 2}); },
              [](Tensors v) {
                at::Tensor y = v[0].alias();
                {
                  at::NoGradGuard no_grad;
                  y.relu_();
                }
                return Tensors{y.transpose(0, -1)};
              });
}

TEST(Found, SizesChangeUnderNoGrad) {
  expect_same([] { return one_leaf({2, 3}); },
              [](Tensors v) {
                at::Tensor y;
                {
                  at::NoGradGuard no_grad;
                  y = v[0].split(2, 1)[1];
                }
                at::Tensor z = y.clone();
                {
                  at::NoGradGuard no_grad;
                  z.t_();
                }
                return Tensors{z};
              });
}

TEST(Found, AViewOfAnOutputThatHoldsElementsTwiceIsWritten) {
  expect_same([] { return one_leaf({1, 1}); },
              [](Tensors v) {
                at::Tensor y = v[0].cos().expand({3, -1, -1});
                return Tensors{y, y.diagonal()};
              });
  expect_same([] { return one_leaf({3}); },
              [](Tensors v) {
                at::Tensor y = (v[0] + v[0]).unfold(0, 2, 1);
                return Tensors{y, y.select(0, 0)};
              });
}

TEST(Found, AnOutputIsWrittenThatAnotherGradientDoesNotRead) {
  expect_same([] { return one_leaf({}); },
              [](Tensors v) {
                at::Tensor y = v[0].exp(), z = v[0].exp();
                return Tensors{y, z.sum()};
              },
              /*higher_orders=*/true);
}

TEST(Found, AListWritesAView) {
  auto two = [] {
    Scene scene = one_plain(torch::randn({4}).slice(0, 0, 4, 2));
    scene.leaves.push_back(torch::randn({2}).requires_grad_());
    scene.pool.push_back(scene.leaves[0].clone());
    return scene;
  };
  expect_same(two, [](Tensors v) {
    at::_foreach_add_({v[0], v[1]}, {v[1], v[1]});
    return Tensors{at::div(v[1], v[0])};
  });
}

TEST(Found, AGradientInsideOfAnInputThatIsAViewOfAWrittenOne) {
  auto two = [] {
    Scene scene = one_computed({1, 1});
    scene.pool.push_back(scene.pool[0].reshape({-1}));
    return scene;
  };
  expect_same(two, [](Tensors v) {
    at::Tensor y = v[0].fill_(3), g = torch::autograd::grad({v[1].sum()}, {v[0]}, {}, true, false, true)[0];
    (void)g.transpose(1, -1);
    return Tensors{y};
  });
}

TEST(Found, AnInputGetsOtherSizesAndStartsToRequireGrad) {
  expect_same([] { return one_plain(numbers({1, 2})); },
              [](Tensors v) {
                v[0].squeeze_();
                v[0].requires_grad_();
                return Tensors{v[0].exp()};
              });
}

TEST(Found, AnEmptyViewOfAWrittenInput) {
  auto two = [] {
    Scene scene = one_computed({0, 3});
    scene.pool.push_back(scene.pool[0].slice(0, 1));
    return scene;
  };
  expect_same(two, [](Tensors v) {
    at::Tensor y = v[1].unbind(1)[2];
    v[0].masked_fill_(at::gt(v[0], 0), 2);
    return Tensors{y};
  });
}

TEST(Found, AnEmptyViewOfAnInputThatGetsOtherSizes) {
  auto two = [] {
    Scene scene = one_computed({1});
    scene.pool.push_back(scene.pool[0].slice(0, 1));
    return scene;
  };
  expect_same(
      two,
      [](Tensors v) {
        at::Tensor y = v[1].abs();
        v[0].unsqueeze_(0);
        return Tensors{y};
      },
      /*higher_orders=*/true);
  expect_same(
      two,
      [](Tensors v) {
        at::Tensor y = at::ones({0}, at::kDouble);
        y.mul_(v[1]);
        y.abs_();
        v[0].unsqueeze_(0);
        return Tensors{y};
      },
      /*higher_orders=*/true);
}

TEST(Found, APartOfAWrittenInputThatIsAViewWithGaps) {
  auto two = [] {
    Scene scene = one_leaf({1, 1});
    scene.pool.insert(scene.pool.begin(), numbers({2, 6}).slice(-1, 0, 6, 2));
    return scene;
  };
  expect_same(two, [](Tensors v) {
    at::Tensor y = v[1].diagonal(), z = v[0].copy_(v[1]);
    v[0].select(0, 1).add_(y);
    return Tensors{z};
  });
}

/// Which layout a sum has decides how a product of it is rounded, and gradients that meet outside of a call
/// are summed in another order.
TEST(Found, AProductOfGradientsThatMeetOutside) {
  auto two = [] {
    Scene scene = one_plain(numbers({65, 33}));
    scene.leaves.push_back(numbers({33, 47}).requires_grad_());
    scene.pool.push_back(scene.leaves[0]);
    return scene;
  };
  expect_same(
      two,
      [](Tensors v) {
        at::Tensor y = at::matmul(v[0], v[1]), t = y.t();
        return Tensors{std::get<0>(at::max(y, 0, true)), t, y};
      },
      /*higher_orders=*/true);
}

TEST(Found, AnInputGetsOtherSizesWhileAViewOfWhatItSharesMemoryWithIsReturned) {
  for (int64_t size : {1, 3}) {
    auto two = [size] {
      Scene scene = one_computed({size});
      scene.pool.push_back(scene.pool[0].slice(0, 1));
      return scene;
    };
    expect_same(two, [](Tensors v) {
      at::Tensor part = v[0].split(2, 0)[0];
      v[1].unsqueeze_(0);
      return Tensors{part};
    });
  }
}

/// A backward that runs the comparison again must not read what the caller has written since.
TEST(Found, AMaskOfAnOutputThatIsWritten) {
  for (const char* partitioner : {"recompute_all", "save_all"}) {
    fuzz::Setup setup;
    setup.options.partitioner = partitioner;
    auto program = [](Tensors v) {
      at::Tensor y = at::sqrt(at::abs(v[0]));
      return Tensors{y, at::masked_fill(v[0], at::gt(y, 0), 2)};
    };
    expect_same([] { return one_leaf({}); }, program, /*higher_orders=*/false, setup);
  }
}

}  // namespace
}  // namespace tandem
