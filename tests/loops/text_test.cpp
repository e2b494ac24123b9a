// The text of kernels: readable, and one for each kernel.
#include "loops/kernels.h"

#include <gtest/gtest.h>

#include <map>

namespace tandem::loops {
namespace {

TEST(KernelText, OfAPointwiseKernel) {
  EXPECT_EQ(to_string(pointwise()), R"(2 kept, 0 reduced, 8 lanes kept, 2 numbers
buffer 0: f32 lane any
buffer 1: f32 lane zero
buffer 2: f32 lane one
%0: f32 = load 0
%1: f32 = load 1
%2: f32 = number 0
%3: f32 = mul %2 %1
%4: f32 = add %0 %3
%5: f32 = number 1
%6: f32 = max %4 %5
store %6 to 2
)");
}

TEST(KernelText, OfFolds) {
  EXPECT_EQ(to_string(softmax()), R"(1 kept, 1 reduced, 32 lanes reduced
buffer 0: f32 lane one varies
buffer 1: f32 lane one varies
%0: f32 = load 0
%1: f32 = reduce_max %0
%2: f32 = sub %0 %1
%3: f32 = exp %2
%4: f32 = reduce_sum %3
%5: f32 = div %3 %4
store %5 to 1
)");
}

TEST(KernelText, OfOffsets) {
  EXPECT_EQ(to_string(place_of_largest()), R"(1 kept, 1 reduced, 32 lanes reduced, 1 numbers
buffer 0: f32 lane one varies
buffer 1: i64 lane zero
buffer 2: bool lane one varies
%0: f32 = load 0
%1: f32 = reduce_max %0
%2: bool = eq %0 %1
%3: bool = ne %0 %0
%4: bool = or %2 %3
%5: i32 = offset 2
%6: i32 = number 0
%7: i32 = select %4 %5 %6
%8: i32 = reduce_min %7
%9: i64 = cast %8
store %9 to 1
)");
}

TEST(KernelText, OfACut) {
  EXPECT_EQ(to_string(cut_sum_of_columns()), R"(2 kept, 1 reduced, 8 lanes kept, cut
buffer 0: f64 lane one varies
buffer 1: f64 lane one
%0: f64 = load 0
%1: f64 = reduce_sum %0
store %1 to 1
)");
}

TEST(KernelText, DiffersWhereAnythingDoes) {
  using Change = void (*)(Kernel&);
  const std::map<std::string, Change> changes = {
      {"nothing", [](Kernel&) {}},
      {"kept", [](Kernel& k) { ++k.kept; }},
      {"reduced", [](Kernel& k) { ++k.reduced; }},
      {"lane_kept", [](Kernel& k) { k.lane_kept = !k.lane_kept; }},
      {"width", [](Kernel& k) { k.width = 1; }},
      {"cut", [](Kernel& k) { k.cut = true; }},
      {"numbers", [](Kernel& k) { ++k.numbers; }},
      {"type of a buffer", [](Kernel& k) { k.buffers[1].type = Type::F64; }},
      {"step of a buffer", [](Kernel& k) { k.buffers[1].lane = Step::Any; }},
      {"varying of a buffer", [](Kernel& k) { k.buffers[1].reduced_varies = false; }},
      {"one more buffer", [](Kernel& k) { k.buffers.push_back(k.buffers[1]); }},
      {"operator", [](Kernel& k) { k.exprs[3].op = Op::Expm1; }},
      {"type", [](Kernel& k) { k.exprs[3].type = Type::F64; }},
      {"a", [](Kernel& k) { k.exprs[5].a = 0; }},
      {"b", [](Kernel& k) { k.exprs[5].b = 0; }},
      {"c", [](Kernel& k) { k.exprs[5].c = 0; }},
      {"c after nothing", [](Kernel& k) { k.exprs[0].c = 0; }},
      {"one more expression", [](Kernel& k) { k.exprs.push_back(k.exprs[5]); }},
      {"what is stored", [](Kernel& k) { k.stores[0].expr = 3; }},
      {"stored where", [](Kernel& k) { k.stores[0].buffer = 0; }},
      {"no store", [](Kernel& k) { k.stores.clear(); }},
  };
  std::map<std::string, std::string> seen;
  for (const auto& [name, change] : changes) {
    Kernel kernel = softmax();
    change(kernel);
    EXPECT_EQ(kernel == softmax(), name == "nothing");
    const auto [earlier, fresh] = seen.emplace(to_string(kernel), name);
    EXPECT_TRUE(fresh) << name << " and " << earlier->second << " have one text";
  }
}

TEST(KernelAnalysis, WhatVaries) {
  EXPECT_EQ(varying(softmax()), (std::vector<bool>{true, false, true, true, false, true}));
  Kernel indices = softmax();
  indices.exprs = {{Op::Index, Type::I64, 0}, {Op::Index, Type::I64, 1}};
  EXPECT_EQ(varying(indices), (std::vector<bool>{false, true}));
  EXPECT_EQ(varying(pointwise()), std::vector<bool>(7, false));
}

TEST(KernelAnalysis, HowOftenReducedDimensionsAreGoneThrough) {
  EXPECT_EQ(passes(softmax()), (std::vector<int32_t>{0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(passes(pointwise()), std::vector<int32_t>(7, 0));
}

}  // namespace
}  // namespace tandem::loops
