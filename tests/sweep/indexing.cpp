// Reading and writing by index and mask, and embeddings.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

namespace {

using Indices = c10::List<std::optional<at::Tensor>>;

Indices indices(std::initializer_list<std::optional<at::Tensor>> each) { return Indices(each); }

}  // namespace

Rows indexing_rows() {
  const Samples masked = both({{f({5, 7}), mask({5, 7})},
                               {f({3, 4}), mask({4})},
                               {f({}), mask({})},
                               {f({0, 3}), mask({0, 3})},
                               {f({4, 6}).t(), mask({4, 6})},
                               {f({3, 5}).sliced(), mask({3, 1})},
                               {f({4, 5}).expanded(), mask({4, 5}).t()}});
  const Samples rows = both({{f({5, 7}), index({4}, 5)},
                             {f({5}), index({3}, 5)},
                             {f({5, 2, 3}), index({6}, 5)},
                             {f({5, 7}).t(), index({4}, 5).sliced()},
                             {f({5, 3}).sliced(), index({0}, 5)},
                             {f({5, 3}).expanded(), index({2}, 5)}});
  const Samples gathered = both({{f({5, 7}), index({5, 3}, 7)},
                                 {f({6}), index({9}, 6)},
                                 {f({5, 7}).t(), index({2, 4}, 7)},
                                 {f({4, 5}).expanded(), index({4, 5}, 5).t()},
                                 {f({4, 5}).sliced(), index({0, 2}, 5)},
                                 {f({}), index({}, 1)}});
  const Samples scattered = both({{f({5, 7}), index({5, 3}, 7), f({5, 3})},
                                  {f({6}), index({4}, 6), f({4})},
                                  {f({5, 7}).t(), index({2, 4}, 7), f({2, 4}).sliced()},
                                  {f({4, 5}).sliced(), index({0, 2}, 5), f({0, 2})},
                                  {f({4, 5}).expanded(), index({4, 2}, 5), f({4, 2}).t()}});
  const Samples sources = both({{f({5, 7}), index({4}, 5), f({4, 7})},
                                {f({5}), index({3}, 5), f({3})},
                                {f({5, 7}).t(), index({4}, 5).sliced(), f({4, 7}).t()},
                                {f({5, 3}).expanded(), index({0}, 5), f({0, 3})}});
  const Samples flat = both({{f({5, 7}), index({4}, 35)},
                             {f({5, 7}).t(), index({2, 3}, 35)},
                             {f({6}).sliced(), index({}, 6)},
                             {f({3, 4}).expanded(), index({0}, 12)}});
  const Samples flat_sources = both({{f({5, 7}), index({4}, 35), f({4})},
                                     {f({5, 7}).t(), index({2, 3}, 35), f({2, 3}).t()},
                                     {f({6}).sliced(), index({2}, 6), f({2})}});
  const Samples words = both({{f({10, 4}), index({6}, 10)},
                              {f({10, 4}), index({2, 3}, 10)},
                              {f({10, 4}).t(), index({2, 3}, 10).t()},
                              {f({10, 4}).sliced(), index({}, 10)},
                              {f({10, 4}), index({0}, 10)}});
  const Samples bags =
      both({{f({10, 4}), index({6}, 10), sorted({3}, 6)}, {f({10, 4}).t(), index({5}, 10), sorted({2}, 5)}});
  const Samples written = both({{f({5, 7}), index({4}, 5), f({4, 7})},
                                {f({5, 7}), index({4}, 5), f({7})},
                                {f({5, 7}).t(), index({2, 2}, 5), f({})},
                                {f({5, 3}).expanded(), index({0}, 5), f({0, 3})}});
  return {
      {"one_hot", rows, [](In x, In i) { return Tensors{at::one_hot(i, 5), x * 2}; }},
      {"index_select", rows, [](In x, In i) { return at::index_select(x, 0, i); }},
      {"index_select/last",
       both({{f({5, 7}), index({4}, 7)},
             {f({5, 7}).t(), index({4}, 7)},
             {f({0, 7}), index({4}, 7)},
             {f({}), index({1}, 1)}}),
       [](In x, In i) { return at::index_select(x, -1, i); }},
      {"gather", gathered, [](In x, In i) { return at::gather(x, -1, i); }},
      {"take_along_dim",
       both({{f({5, 7}), index({5, 3}, 7)},
             {f({5, 7}).t(), index({1, 3}, 7)},
             {f({4, 5}).sliced(), index({4, 0}, 5)},
             {f({}), index({}, 1)}}),
       [](In x, In i) { return at::take_along_dim(x, i, -1); }},
      {"take", flat, [](In x, In i) { return at::take(x, i); }},
      {"put", flat_sources, [](In x, In i, In y) { return at::put(x, i, y, true); }},
      {"scatter", scattered, [](In x, In i, In y) { return at::scatter(x, -1, i, y); }},
      {"scatter/value", gathered, [](In x, In i) { return at::scatter(x, -1, i, 0.5); }},
      {"scatter/reduce_throws", both({{f({5, 7}), index({5, 3}, 7), f({5, 3})}}),
       [](In x, In i, In y) { return at::scatter(x, -1, i, y, "add"); }},
      {"scatter_add", scattered, [](In x, In i, In y) { return at::scatter_add(x, -1, i, y); }},
      {"scatter_reduce", scattered, [](In x, In i, In y) { return at::scatter_reduce(x, -1, i, y, "sum"); }},
      {"scatter_reduce/prod", scattered,
       [](In x, In i, In y) { return at::scatter_reduce(x, -1, i, y, "prod", false); }},
      {"scatter_reduce/mean", scattered,
       [](In x, In i, In y) { return at::scatter_reduce(x, -1, i, y, "mean"); }},
      {"scatter_reduce/amax", scattered,
       [](In x, In i, In y) { return at::scatter_reduce(x, -1, i, y, "amax"); }},
      {"scatter_reduce/amin", scattered,
       [](In x, In i, In y) { return at::scatter_reduce(x, -1, i, y, "amin", false); }},
      {"index", rows, [](In x, In i) { return at::index(x, indices({i})); }},
      {"index/second", both({{f({5, 7}), index({4}, 7)}, {f({2, 3, 4}).t(), index({2, 2}, 3)}}),
       [](In x, In i) { return at::index(x, indices({std::nullopt, i})); }},
      {"index/two",
       both({{f({5, 7}), index({4}, 5), index({4}, 5)}, {f({5, 7}).t(), index({3, 1}, 5), index({4}, 5)}}),
       [](In x, In i, In j) { return at::index(x, indices({i, j})); }},
      {"_unsafe_index", rows, [](In x, In i) { return at::_unsafe_index(x, indices({i})); }},
      {"index_put", written, [](In x, In i, In y) { return at::index_put(x, indices({i}), y); }},
      {"index_put/accumulate", written,
       [](In x, In i, In y) { return at::index_put(x, indices({i}), y, true); }},
      {"_unsafe_index_put", written,
       [](In x, In i, In y) { return at::_unsafe_index_put(x, indices({i}), y, true); }},
      {"index_put/mask", both({{f({5, 7}), mask({5, 7}), f({})}, {f({4, 6}).t(), mask({4, 6}), f({})}}),
       [](In x, In m, In y) { return at::index_put(x, indices({m}), y.detach()); }},
      {"index_add", sources, [](In x, In i, In y) { return at::index_add(x, 0, i, y, 0.5); }},
      {"index_copy", sources, [](In x, In i, In y) { return at::index_copy(x, 0, i, y); }},
      {"index_fill", rows, [](In x, In i) { return at::index_fill(x, 0, i, 0.5); }},
      {"index_fill/tensor", with(rows, {f({}).constant()}),
       [](In x, In i, In value) { return at::index_fill(x, 0, i, value); }},
      {"index_reduce", sources, [](In x, In i, In y) { return at::index_reduce(x, 0, i, y, "amax"); }},
      {"index_reduce/prod", sources,
       [](In x, In i, In y) { return at::index_reduce(x, 0, i, y, "prod", false); }},
      {"index_reduce/mean", sources, [](In x, In i, In y) { return at::index_reduce(x, 0, i, y, "mean"); }},
      {"masked_fill", masked, [](In x, In m) { return at::masked_fill(x, m, -1.5); }},
      {"masked_fill/tensor", with(masked, {f({}).constant()}),
       [](In x, In m, In value) { return at::masked_fill(x, m, value); }},
      {"masked_scatter", with(masked, {f({40})}),
       [](In x, In m, In y) { return at::masked_scatter(x, m, y); }},
      {"select_scatter", both({{f({5, 7}), f({7})}, {f({5, 7}).t(), f({7}).sliced()}, {f({5, 0}), f({0})}}),
       [](In x, In y) { return at::select_scatter(x, y, 0, 2); }},
      {"slice_scatter",
       both({{f({5, 7}), f({2, 7})}, {f({5, 7}).t(), f({2, 7}).sliced()}, {f({5, 0}), f({2, 0})}}),
       [](In x, In y) { return at::slice_scatter(x, y, 0, 1, 5, 2); }},
      {"diagonal_scatter", both({{f({5, 7}), f({5})}, {f({5, 7}).t(), f({5}).sliced()}}),
       [](In x, In y) { return at::diagonal_scatter(x, y, 1); }},
      {"as_strided_scatter", both({{f({5, 7}), f({2, 3})}, {f({35}), f({2, 3}).t()}}),
       [](In x, In y) { return at::as_strided_scatter(x, y, {2, 3}, {7, 2}, 1); }},
      {"embedding", words, [](In weight, In i) { return at::embedding(weight, i); }},
      {"embedding/padding", words, [](In weight, In i) { return at::embedding(weight, i, 3); }},
      {"embedding/scaled", words, [](In weight, In i) { return at::embedding(weight, i, -1, true); }},
      {"embedding_bag", bags,
       [](In weight, In i, In starts) { return std::get<0>(at::embedding_bag(weight, i, starts)); }},
      {"embedding_bag/mean", bags,
       [](In weight, In i, In starts) {
         return std::get<0>(at::embedding_bag(weight, i, starts, false, 1));
       }},
      {"embedding_bag/max", bags,
       [](In weight, In i, In starts) {
         return std::get<0>(at::embedding_bag(weight, i, starts, false, 2));
       }},
      {"embedding_bag/weights", both({{f({10, 4}), index({6}, 10), sorted({3}, 6), f({6})}}),
       [](In weight, In i, In starts, In scales) {
         return std::get<0>(at::embedding_bag(weight, i, starts, false, 0, false, scales));
       }},
      {"bucketize/kept", pairs(),
       [](In x, In y) { return Tensors{at::bucketize(x, at::linspace(-1, 1, 5)), x * y}; }},
      {"argmax/gather", matrices(), [](In x) { return at::gather(x, -1, at::argmax(x, -1, true)); }},
      {"argsort/gather", along(), [](In x) { return at::gather(x, -1, at::argsort(x)); }},
  };
}

}  // namespace tandem::sweep
