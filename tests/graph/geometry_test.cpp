#include "graph/geometry.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tandem {
namespace {

struct Box {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  Placement placement() const { return {sizes, strides, offset, 4}; }
  std::set<int64_t> places() const {
    std::set<int64_t> found = {offset};
    for (size_t d = 0; d < sizes.size(); ++d) {
      std::set<int64_t> wider;
      for (int64_t place : found)
        for (int64_t i = 0; i < sizes[d]; ++i) wider.insert(place + i * strides[d]);
      found = wider;
    }
    return found;
  }
};

bool share_a_place(const Box& a, const Box& b) {
  const auto places = a.places();
  for (int64_t place : b.places())
    if (places.count(place)) return true;
  return false;
}

TEST(SurelyApart, NeverOfBoxesThatShareAPlace) {
  std::mt19937 random(3);
  auto pick = [&](int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  };
  size_t apart = 0, beside = 0;
  for (int n = 0; n < 20000; ++n) {
    Box boxes[2];
    for (Box& box : boxes) {
      for (int64_t d = pick(0, 3); d > 0; --d) {
        box.sizes.push_back(pick(0, 4));
        box.strides.push_back(pick(0, 12));
      }
      box.offset = pick(0, 20);
    }
    if (pick(0, 1)) boxes[1].strides = boxes[0].strides, boxes[1].sizes.resize(boxes[0].sizes.size(), 2);
    const bool said = surely_apart(boxes[0].placement(), boxes[1].placement());
    EXPECT_EQ(said, surely_apart(boxes[1].placement(), boxes[0].placement()));
    if (!said) continue;
    EXPECT_FALSE(share_a_place(boxes[0], boxes[1])) << n;
    ++apart;
    beside += byte_range(boxes[0].placement()).second > byte_range(boxes[1].placement()).first &&
              byte_range(boxes[1].placement()).second > byte_range(boxes[0].placement()).first;
  }
  EXPECT_GT(apart, 1000u);
  EXPECT_GT(beside, 100u);
}

TEST(SurelyApart, OfPartsOfOneTensor) {
  auto rows_of = [](int64_t width, int64_t offset) { return Box{{4, 4}, {width, 1}, offset}; };
  auto said = [](const Box& a, const Box& b) { return surely_apart(a.placement(), b.placement()); };
  EXPECT_TRUE(said({{4, 2}, {4, 1}, 0}, {{4, 2}, {4, 1}, 2}));  // columns
  EXPECT_TRUE(said({{2, 4}, {4, 1}, 0}, {{2, 4}, {4, 1}, 8}));  // rows
  EXPECT_TRUE(said({{4}, {2}, 0}, {{4}, {2}, 1}));              // every other element
  EXPECT_TRUE(said(rows_of(8, 0), rows_of(8, 28)));
  EXPECT_TRUE(said(rows_of(9, 0), rows_of(9, 22)));
  EXPECT_TRUE(said(rows_of(9, 0), rows_of(9, 23)));
  EXPECT_FALSE(said(rows_of(9, 0), rows_of(9, 24)));
  EXPECT_FALSE(said(rows_of(9, 0), rows_of(9, 25)));
  EXPECT_TRUE(said({{2, 4, 3}, {110, 24, 4}, 5}, {{60}, {1}, 196}));
  EXPECT_TRUE(said({{0, 4}, {4, 1}, 0}, {{4}, {1}, 0}));
}

TEST(SurelyApart, CountsInBytes) {
  const std::vector<int64_t> four = {4}, one = {1};
  EXPECT_TRUE(surely_apart({four, one, 0, 8}, {four, one, 8, 4}));
  EXPECT_FALSE(surely_apart({four, one, 0, 8}, {four, one, 7, 4}));
}

}  // namespace
}  // namespace tandem
