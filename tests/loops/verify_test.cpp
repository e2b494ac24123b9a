// What is refused as malformed, and in which words.
#include "loops/kernels.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tandem::loops {
namespace {

std::string refusal(const Kernel& kernel) {
  try {
    verify(kernel);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

struct Malformed {
  const char* sentence;
  void (*spoil)(Kernel&);
};

void expect_refused(const Kernel& kernel, std::initializer_list<Malformed> all) {
  EXPECT_EQ(refusal(kernel), "");
  for (const Malformed& malformed : all) {
    Kernel spoilt = kernel;
    malformed.spoil(spoilt);
    EXPECT_EQ(refusal(spoilt), std::string("malformed kernel: ") + malformed.sentence);
  }
}

TEST(VerifyKernel, TakesWhatIsWellFormed) {
  for (const Kernel& kernel : {pointwise(), softmax(), layer_norm(), cut_sum_of_columns(), place_of_largest(),
                               sum_of_rows(Type::I64, true), sum_of_rows(Type::F32, false)})
    EXPECT_EQ(refusal(kernel), "");
}

TEST(VerifyKernel, RefusesDimensions) {
  expect_refused(pointwise(),
                 {{"it has -1 kept dimensions", [](Kernel& k) { k.kept = -1; }},
                  {"it has -2 reduced dimensions", [](Kernel& k) { k.reduced = -2; }},
                  {"it has -1 numbers", [](Kernel& k) { k.numbers = -1; }},
                  {"it has 12 lanes, not 1, 8, 16, 32 or 64", [](Kernel& k) { k.width = 12; }},
                  {"its lanes are kept, but no dimension is", [](Kernel& k) { k.kept = 0; }},
                  {"its lanes are reduced, but no dimension is", [](Kernel& k) { k.lane_kept = false; }},
                  {"it is cut without a kept and a reduced dimension", [](Kernel& k) { k.cut = true; }}});
  expect_refused(cut_sum_of_columns(),
                 {{"its lanes are the pieces that it is cut into", [](Kernel& k) { k.kept = 1; }}});
}

TEST(VerifyKernel, RefusesBuffers) {
  expect_refused(pointwise(),
                 {{"buffer 1 has no type", [](Kernel& k) { k.buffers[1].type = Type(8); }},
                  {"buffer 1 has no step along the lanes", [](Kernel& k) { k.buffers[1].lane = Step(3); }},
                  {"buffer 0 varies along reduced dimensions, but there are none",
                   [](Kernel& k) { k.buffers[0].reduced_varies = true; }}});
  expect_refused(layer_norm(),
                 {{"buffer 2 varies along the lanes, which are reduced, but not along the reduced dimensions",
                   [](Kernel& k) { k.buffers[2].lane = Step::One; }}});
}

TEST(VerifyKernel, RefusesPlaces) {
  expect_refused(pointwise(),
                 {{"%4 has no operator", [](Kernel& k) { k.exprs[4].op = Op(100); }},
                  {"%4 has no type", [](Kernel& k) { k.exprs[4].type = Type(8); }},
                  {"%4 (add) reads %4, which is not before it", [](Kernel& k) { k.exprs[4].a = 4; }},
                  {"%4 (add) reads %-1, which is not before it", [](Kernel& k) { k.exprs[4].b = -1; }},
                  {"%4 (add) has 2 where it reads nothing", [](Kernel& k) { k.exprs[4].c = 2; }},
                  {"%0 (load) has 0 where it reads nothing", [](Kernel& k) { k.exprs[0].b = 0; }},
                  {"%0 loads buffer 3, which is not there", [](Kernel& k) { k.exprs[0].a = 3; }},
                  {"%2 is number 2, which is not there", [](Kernel& k) { k.exprs[2].a = 2; }},
                  {"%6 is an offset in buffer 3, which is not there",
                   [](Kernel& k) { k.exprs[6] = {Op::Offset, Type::I64, 3}; }},
                  {"%6 is the index of dimension 2, which is not there",
                   [](Kernel& k) { k.exprs[6] = {Op::Index, Type::I64, 2}; }}});
}

TEST(VerifyKernel, RefusesTypes) {
  expect_refused(
      pointwise(),
      {{"%0 loads as f64 from a buffer of f32", [](Kernel& k) { k.exprs[0].type = Type::F64; }},
       {"%4 (add) takes %0, of f32, as f64", [](Kernel& k) { k.exprs[4].type = Type::F64; }},
       {"%4 (add) is not of bool", [](Kernel& k) { k.exprs[4].type = Type::Bool; }},
       {"%4 (div) is not of i32", [](Kernel& k) { k.exprs[4] = {Op::Div, Type::I32, 0, 1}; }},
       {"%4 (and) is not of f32", [](Kernel& k) { k.exprs[4] = {Op::And, Type::F32, 0, 1}; }},
       {"%4 (exp) is not of i64", [](Kernel& k) { k.exprs[4] = {Op::Exp, Type::I64, 0}; }},
       {"%4 (lt) gives f32, not bool", [](Kernel& k) { k.exprs[4].op = Op::Lt; }},
       {"%6 (lt) takes %5, of i8, as f32",
        [](Kernel& k) {
          k.exprs[5] = {Op::Cast, Type::I8, 0};
          k.exprs[6] = {Op::Lt, Type::Bool, 0, 5};
        }},
       {"%6 (select) takes %0, of f32, as bool",
        [](Kernel& k) { k.exprs[6] = {Op::Select, Type::F32, 0, 1, 2}; }},
       {"%6 (select) takes %1, of f32, as f64",
        [](Kernel& k) {
          k.exprs[5] = {Op::Lt, Type::Bool, 0, 1};
          k.exprs[6] = {Op::Select, Type::F64, 5, 1, 2};
        }},
       {"%6 (select) takes %4, of i8, as f32",
        [](Kernel& k) {
          k.exprs[4] = {Op::Cast, Type::I8, 0};
          k.exprs[5] = {Op::Lt, Type::Bool, 0, 1};
          k.exprs[6] = {Op::Select, Type::F32, 5, 1, 4};
        }},
       {"%6 is an index of i32, not of i64", [](Kernel& k) { k.exprs[6] = {Op::Index, Type::I32, 1}; }},
       {"%6 is an offset of i8, not of i32 or i64",
        [](Kernel& k) { k.exprs[6] = {Op::Offset, Type::I8, 1}; }},
       {"%6 (reduce_sum) folds along reduced dimensions, but there are none",
        [](Kernel& k) { k.exprs[6] = {Op::ReduceSum, Type::F32, 4}; }},
       {"number 0 is read as f32 and as i64",
        [](Kernel& k) { k.exprs.push_back({Op::Number, Type::I64, 0}); }}});
}

TEST(VerifyKernel, RefusesStores) {
  expect_refused(
      pointwise(),
      {{"%7 is stored, but not there", [](Kernel& k) { k.stores[0].expr = 7; }},
       {"%6 is stored to buffer 3, which is not there", [](Kernel& k) { k.stores[0].buffer = 3; }},
       {"buffer 2 is stored to twice", [](Kernel& k) { k.stores.push_back({0, 2}); }},
       {"buffer 0 is both loaded and stored", [](Kernel& k) { k.stores.push_back({1, 0}); }},
       {"%6, of f32, is stored to buffer 2, of i8", [](Kernel& k) { k.buffers[2].type = Type::I8; }},
       {"%6 is stored to buffer 2, where all lanes are one place",
        [](Kernel& k) { k.buffers[2].lane = Step::Zero; }}});
  expect_refused(softmax(),
                 {{"%4 is stored to buffer 1, and only one of them varies along the reduced dimensions",
                   [](Kernel& k) { k.stores[0].expr = 4; }},
                  {"%5 is stored to buffer 1, and only one of them varies along the reduced dimensions",
                   [](Kernel& k) { k.buffers[1] = {Type::F32, Step::Zero, false}; }},
                  {"%5 is stored to buffer 1, where all lanes are one place",
                   [](Kernel& k) { k.buffers[1].lane = Step::Zero; }}});
}

}  // namespace
}  // namespace tandem::loops
