// Programs that random search found, which return a view of what they use inside as well: the terms of a
// gradient must meet in eager's order, for their sum is rounded. On the data for which the search found them,
// and with each partitioner.
#include "fuzz/found.h"
#include "fuzz/state.h"

#include <numeric>

namespace tandem::found_views {
namespace {

using fuzz::Scene;
using Given = std::function<Scene()>;

at::Tensor floats(at::IntArrayRef sizes) { return torch::randn(sizes, at::kFloat); }

Scene one_leaf(at::IntArrayRef sizes) {
  at::Tensor leaf = floats(sizes).requires_grad_();
  return {{leaf}, {leaf}};
}

Scene one_computed(at::IntArrayRef sizes) {
  at::Tensor leaf = floats(sizes).requires_grad_();
  return {{leaf.clone()}, {leaf}};
}

void expect_same(const Given& given, std::vector<uint64_t> found_on,
                 const std::function<Tensors(Tensors)>& run, bool higher_orders = false) {
  auto scene = [&](uint64_t seed, const Scene*) {
    torch::manual_seed(seed);
    return given();
  };
  std::vector<size_t> arguments(given().pool.size());
  std::iota(arguments.begin(), arguments.end(), 0);
  for (uint64_t data = 1; data <= 4; ++data) found_on.push_back(data);
  for (const char* partitioner : {"default", "min_cut", "recompute_all", "save_all"}) {
    fuzz::Setup setup;
    setup.options.partitioner = partitioner;
    for (uint64_t data : found_on) found::expect_alike({scene, arguments, run, data, higher_orders}, setup);
  }
}

TEST(FoundViews, ATermBehindThatOfAReturnedView) {
  expect_same([] { return one_leaf({1, 2}); }, {203978},
              [](Tensors v) {
                at::Tensor twice = at::add(v[0], v[0]), cosine = at::cos(twice), view = twice.slice(1, 0, 3);
                return Tensors{at::mul(cosine.add_(view), twice), view, twice};
              });
  expect_same([] { return one_leaf({1, 2}); }, {132401},
              [](Tensors v) {
                at::Tensor more = at::add(v[0], 1), product = fuzz::custom_product(v[0], more),
                           flat = more.flatten();
                return Tensors{more, flat, at::lerp(flat, product, more)};
              });
}

TEST(FoundViews, AViewWhoseBaseIsWrittenWaitsForANodeThatWasMadeBefore) {
  expect_same([] { return one_computed({}); }, {983948},
              [](Tensors v) {
                at::Tensor mean = at::mean(v[0]), view = mean.unsqueeze(0), sum = mean.add_(v[0]);
                return Tensors{view, at::atan2(sum, at::add(mean, view, 3))};
              });
}

TEST(FoundViews, WhatAReturnedViewIsAViewOfIsUsedInside) {
  auto three = [] {
    Scene scene;
    scene.pool.push_back(floats({2}));
    scene.leaves.push_back(floats({2, 2}).transpose(0, -1).requires_grad_());
    scene.pool.push_back(scene.leaves.back().clone());
    scene.pool.push_back(scene.pool[0].alias());
    return scene;
  };
  expect_same(three, {613537}, [](Tensors v) {
    at::Tensor part = fuzz::custom_product(v[1], v[2]).slice(1, 0, 4, 2);
    at::Tensor product = at::matmul(part, part.transpose(0, -1)), view = part.slice(0, 1, 3);
    return Tensors{view, at::_foreach_addcmul({v[0], product}, {product, view}, {view, v[0]}, 1).at(1)};
  });
}

TEST(FoundViews, TwoViewsOfOneViewThatIsNotReturned) {
  expect_same([] { return one_leaf({2, 3}); }, {},
              [](Tensors v) {
                at::Tensor part = at::exp(v[0]).slice(1, 0, 2), first = part.select(0, 0),
                           whole = part.transpose(0, 1);
                at::Tensor product = at::matmul(part, whole), sum = at::add(product, first, 3);
                return Tensors{whole, first, at::mul(at::mul(sum, whole), part)};
              });
}

/// Eager has one node for all of them: the gradient of one is not added to zeros for the others.
TEST(FoundViews, OneOfSeveralResultsOfAnOperatorIsReturned) {
  auto given = [] {
    Scene scene = one_leaf({3});
    scene.pool.push_back(floats({}));
    return scene;
  };
  expect_same(given, {384851}, [](Tensors v) {
    const auto parts = at::add(v[1], v[0]).split(2, 0);
    return Tensors{parts.at(1), at::add(parts.at(1), parts.at(0), 0)};
  });
  expect_same([] { return one_leaf({2, 3}); }, {},
              [](Tensors v) {
                const auto rows = at::neg(v[0]).unbind(0);
                return Tensors{rows.at(1), at::add(rows.at(1), rows.at(0), 0), rows.at(0)};
              });
  expect_same([] { return one_leaf({1, 3}); }, {549397},
              [](Tensors v) {
                const auto parts =
                    at::_foreach_addcmul({v[0], v[0]}, {v[0], v[0]}, {v[0], v[0]}, 1).at(0).split(2, 1);
                return Tensors{parts.at(1), parts.at(0), parts.at(0)};
              });
}

/// The way to the detached one is gone without a history; other results of the operator keep theirs.
TEST(FoundViews, OneOfSeveralResultsOfAnOperatorIsDetachedAndReturned) {
  auto doubles = [] {
    at::Tensor leaf = torch::randn({2}, at::kDouble).requires_grad_();
    return Scene{{leaf, leaf}, {leaf}};
  };
  expect_same(
      doubles, {981734},
      [](Tensors v) {
        const auto parts = at::round(v[1]).chunk(2, 0);
        return Tensors{parts.at(1), parts.at(1).detach(), parts.at(0)};
      },
      /*higher_orders=*/true);
  expect_same([] { return one_leaf({1, 3}); }, {175733},
              [](Tensors v) {
                const auto parts = at::cat({v[0], v[0]}, 1).split(2, 1);
                return Tensors{parts.at(2), parts.at(2).detach(), parts.at(1)};
              });
  expect_same([] { return one_leaf({3, 2}); }, {},
              [](Tensors v) {
                const auto rows = at::exp(v[0]).unbind(0);
                at::Tensor view;
                {
                  at::NoGradGuard no_grad;
                  view = rows.at(1).slice(0, 0, 1);
                }
                return Tensors{rows.at(1), view, rows.at(0).slice(0, 1, 2), rows.at(2)};
              });
}

TEST(FoundViews, AViewUnderNoGradOfWhatIsWrittenInPart) {
  auto two = [] {
    Scene scene = found::one_leaf({2});
    scene.leaves.push_back(found::numbers({2}).requires_grad_());
    scene.pool.push_back(scene.leaves.back().clone());
    return scene;
  };
  expect_same(
      two, {324836},
      [](Tensors v) {
        at::Tensor written = v[1].zero_(), view;
        auto products = at::_foreach_mul({v[0], v[1]}, 2);
        products.at(0).slice(0, 0, 3).cumsum_(0);
        {
          at::NoGradGuard no_grad;
          view = products.at(0).slice(0, 0, 3);
        }
        return Tensors{view, written, products.at(1)};
      },
      /*higher_orders=*/true);
}

/// Under create_graph a gradient that is a view of what it was given is copied, and lies as it would.
TEST(FoundViews, AGradientWithGapsUnderCreateGraph) {
  auto two = [] {
    Scene scene = found::one_leaf({});
    scene.pool.push_back(found::numbers({2, 3}));
    return scene;
  };
  expect_same(
      two, {924295},
      [](Tensors v) {
        const auto sums = at::_foreach_add({v[1], v[0]}, {v[0], v[1]});
        return Tensors{sums.at(1), at::stack({sums.at(1), sums.at(0)}, 1)};
      },
      /*higher_orders=*/true);
}

/// Nobody can ask for the gradient of such a view, so what is returned besides is no place where the history
/// falls apart, and gradients of gradients have eager's bits.
TEST(FoundViews, AViewMadeUnderNoGradOfWhatAnotherOutputLeadsTo) {
  expect_same([] { return found::one_leaf({3}); }, {818200},
              [](Tensors v) {
                at::Tensor power = at::pow(at::add(v[0], v[0]), v[0]), other = at::exp(power);
                const at::NoGradGuard no_grad;
                return Tensors{other.view({-1}), power};
              },
              /*higher_orders=*/true);
}

/// The trace must not leave the base as it asked it to be: the call that follows it writes the view.
TEST(FoundViews, TheBaseOfACapturedViewStartsToRequireGrad) {
  auto given = [](uint64_t seed, const Scene* before) {
    torch::manual_seed(seed);
    if (before) return *before;
    at::Tensor base = found::numbers({1, 1});
    return Scene{{base, base.slice(0, 1)}, {}};
  };
  auto written_first = [](Tensors v) {
    v[1].index_fill_(1, at::zeros({1}, at::kLong), 3);
    return Tensors{v[0].requires_grad_()};
  };
  auto asked_last = [](Tensors v) {
    v[1].index_fill_(1, at::zeros({1}, at::kLong), 3);
    v[0].requires_grad_();
    return Tensors{v[1]};
  };
  found::expect_alike({given, {}, written_first, 55585, true});
  found::expect_alike({given, {}, asked_last, 55585, true});
}

/// An argument that is a view of all of something, and a leaf.
fuzz::Subject view_and_leaf(at::IntArrayRef sizes, uint64_t data, std::function<Tensors(Tensors)> run) {
  auto given = [sizes = sizes.vec()](uint64_t seed, const fuzz::Scene*) {
    torch::manual_seed(seed);
    const at::Tensor view = found::numbers(sizes).transpose(0, -1);
    const at::Tensor leaf = found::numbers(sizes).requires_grad_();
    return fuzz::Scene{{view, leaf}, {leaf}};
  };
  return {given, {0, 1}, std::move(run), data, /*higher_orders=*/true};
}

TEST(FoundViews, WhatReadAViewIsAddedUpApartFromWhatWroteItAfterwards) {
  found::expect_alike(view_and_leaf({7}, 94252, [](Tensors v) {
    v[0].add_(v[1]);
    const at::Tensor read = at::add(v[0], v[0], 3);
    v[0].add_(read);
    return Tensors{read};
  }));
}

TEST(FoundViews, PartsOfAViewAreWrittenInTheLayoutOfWhatItIsAViewOf) {
  found::expect_alike(view_and_leaf({2, 2}, 1018599, [](Tensors v) {
    v[0].mul_(at::mean(v[1]));
    v[0].slice(0, 1).mul_(2);
    return Tensors{v[0].sin_()};
  }));
}

}  // namespace
}  // namespace tandem::found_views
