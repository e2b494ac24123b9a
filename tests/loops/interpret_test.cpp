// The interpreter against loops as one writes them.
#include "loops/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace tandem::loops {
namespace {

using Sizes = std::vector<int64_t>;

std::vector<int64_t> shape_of(int64_t unit_lanes, int64_t cut_length, const Sizes& sizes,
                              const std::vector<Sizes>& strides) {
  std::vector<int64_t> shape = {unit_lanes, cut_length};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  for (const Sizes& of_buffer : strides) shape.insert(shape.end(), of_buffer.begin(), of_buffer.end());
  return shape;
}

template <class T>
std::vector<T> waves(size_t count, double pace) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(100 * std::sin(pace * (i + 1)));
  return values;
}

TEST(Interpret, PointwiseWithBroadcastAndStrides) {
  constexpr int64_t rows = 3, columns = 11, unit_lanes = 8, units = rows * 2;
  // The first operand is transposed, the second is one number for each row.
  auto x = waves<float>(rows * columns, 0.7), y = waves<float>(rows, 0.3);
  std::vector<float> out(rows * columns), expected(rows * columns);
  const float scale = 1.5f;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      expected[i * columns + j] = std::max(x[j * rows + i] + scale * y[i], 0.25f);
  const auto shape =
      shape_of(unit_lanes, 0, {rows, columns}, {Sizes{1, rows}, Sizes{1, 0}, Sizes{columns, 1}});
  void* const buffers[] = {x.data(), y.data(), out.data()};
  const Number numbers[] = {{.real = scale}, {.real = 0.25}};
  interpret(pointwise(), buffers, shape.data(), numbers, 0, units);
  EXPECT_EQ(out, expected);
}

TEST(Interpret, UnitsArePiecesOfTheLanes) {
  constexpr int64_t rows = 2, columns = 11, unit_lanes = 8;
  std::vector<float> x(rows * columns, 1), y(rows, 0), out(rows * columns, 7);
  const auto shape =
      shape_of(unit_lanes, 0, {rows, columns}, {Sizes{columns, 1}, Sizes{1, 0}, Sizes{columns, 1}});
  void* const buffers[] = {x.data(), y.data(), out.data()};
  const Number numbers[] = {{.real = 0}, {.real = 0}};
  interpret(pointwise(), buffers, shape.data(), numbers, 1, 3);
  for (int64_t i = 0; i < rows * columns; ++i) EXPECT_EQ(out[i], i >= 8 && i < 19 ? 1 : 7) << i;
}

TEST(Interpret, SumsOfRowsAndOfColumns) {
  constexpr int64_t rows = 9, columns = 13;
  auto x = waves<int16_t>(rows * columns, 0.9);
  for (int16_t& element : x) element = static_cast<int16_t>(element * 300);
  for (bool of_columns : {false, true}) {
    const int64_t kept = of_columns ? columns : rows, reduced = of_columns ? rows : columns;
    const Sizes strides = of_columns ? Sizes{1, columns} : Sizes{columns, 1};
    std::vector<int16_t> out(kept), expected(kept);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        expected[of_columns ? j : i] =
            static_cast<int16_t>(expected[of_columns ? j : i] + x[i * columns + j]);
    const auto shape = shape_of(kept, 0, {kept, reduced}, {strides, Sizes{1, 0}});
    void* const buffers[] = {x.data(), out.data()};
    interpret(sum_of_rows(Type::I16, of_columns), buffers, shape.data(), nullptr, 0, of_columns ? 1 : kept);
    EXPECT_EQ(out, expected);
  }
}

TEST(Interpret, ASumOfManyIsExact) {
  constexpr int64_t count = 1 << 20;
  std::vector<float> x(count, 0.1f), out(1);
  x[0] = 1e8f;
  x[count - 1] = -1e8f;
  const auto shape = shape_of(1, 0, {1, count}, {Sizes{0, 1}, Sizes{0, 0}});
  void* const buffers[] = {x.data(), out.data()};
  interpret(sum_of_rows(Type::F32, false), buffers, shape.data(), nullptr, 0, 1);
  EXPECT_EQ(out[0], static_cast<float>((count - 2) * double{0.1f}));
}

TEST(Interpret, Softmax) {
  constexpr int64_t rows = 4, columns = 40;
  auto x = waves<float>(rows * columns, 1.1);
  std::vector<float> out(rows * columns);
  const Sizes contiguous = {columns, 1};
  const auto shape = shape_of(1, 0, {rows, columns}, {contiguous, contiguous});
  void* const buffers[] = {x.data(), out.data()};
  interpret(softmax(), buffers, shape.data(), nullptr, 0, rows);
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = &x[i * columns];
    const float largest = *std::max_element(row, row + columns);
    double total = 0;
    for (int64_t j = 0; j < columns; ++j) total += std::exp(row[j] - largest);
    for (int64_t j = 0; j < columns; ++j)
      EXPECT_EQ(out[i * columns + j], std::exp(row[j] - largest) / static_cast<float>(total));
  }
}

TEST(Interpret, PlaceOfTheFirstLargest) {
  constexpr int64_t rows = 4, columns = 40;
  std::vector<float> x(rows * columns, 1);
  x[3] = x[7] = 2;
  x[columns + 5] = x[columns + 9] = std::nanf("");
  std::fill_n(&x[2 * columns], columns, -std::numeric_limits<float>::infinity());
  x[4 * columns - 1] = 3;
  std::vector<int64_t> out(rows, -1);
  const auto shape = shape_of(1, 0, {rows, columns}, {Sizes{columns, 1}, Sizes{1, 0}, Sizes{0, 1}});
  // No memory lies behind what only numbers places.
  void* const buffers[] = {x.data(), out.data(), nullptr};
  const Number numbers[] = {{.integer = std::numeric_limits<int32_t>::max()}};
  interpret(place_of_largest(), buffers, shape.data(), numbers, 0, rows);
  EXPECT_EQ(out, (std::vector<int64_t>{3, 5, 0, columns - 1}));
}

TEST(Interpret, LayerNorm) {
  constexpr int64_t rows = 3, columns = 17;
  auto x = waves<float>(rows * columns, 0.5), weight = waves<float>(columns, 0.2);
  std::vector<float> means(rows), out(rows * columns), scales(rows);
  const auto shape = shape_of(1, 0, {rows, columns},
                              {Sizes{columns, 1}, Sizes{0, 1}, Sizes{1, 0}, Sizes{columns, 1}, Sizes{1, 0}});
  void* const buffers[] = {x.data(), weight.data(), means.data(), out.data(), scales.data()};
  const Number numbers[] = {{.real = 1e-5}, {.real = 1.0 / columns}};
  interpret(layer_norm(), buffers, shape.data(), numbers, 0, rows);
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = &x[i * columns];
    const double mean = std::accumulate(row, row + columns, 0.0) / columns;
    double squares = 0;
    for (int64_t j = 0; j < columns; ++j) squares += (row[j] - mean) * (row[j] - mean);
    const double root = std::sqrt(squares / columns + 1e-5);
    EXPECT_NEAR(means[i], mean, 1e-5);
    EXPECT_NEAR(scales[i], root, 1e-5 * root);
    for (int64_t j = 0; j < columns; ++j)
      EXPECT_NEAR(out[i * columns + j], (row[j] - mean) / root * weight[j], 1e-4);
  }
}

TEST(Interpret, TheLastPieceOfACutIsShorter) {
  constexpr int64_t pieces = 3, length = 4, rows = 10, columns = 9;
  // What lies behind the last row is not to be read.
  auto x = waves<double>(pieces * length * columns, 0.4);
  std::vector<double> out(pieces * columns), expected(pieces * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) expected[i / length * columns + j] += x[i * columns + j];
  const auto shape = shape_of(16, rows, {pieces, columns, length},
                              {Sizes{length * columns, 1, columns}, Sizes{columns, 1, 0}});
  void* const buffers[] = {x.data(), out.data()};
  interpret(cut_sum_of_columns(), buffers, shape.data(), nullptr, 0, pieces);
  for (int64_t i = 0; i < pieces * columns; ++i) EXPECT_DOUBLE_EQ(out[i], expected[i]);
}

/// What an operator of one or two operands, which lie in buffers, makes of single values.
template <class Result, class T>
Result value_of(Op op, Type result, Type type, std::vector<T> operands) {
  Written w;
  w.kernel.kept = 1;
  w.kernel.width = 1;
  std::vector<void*> buffers;
  for (T& operand : operands) {
    w.buffer(type, Step::Any);
    buffers.push_back(&operand);
  }
  const int32_t a = w.load(0), b = operands.size() > 1 ? w.load(1) : -1;
  w.store(w.expr(op, result, a, b), w.buffer(result, Step::One));
  Result out;
  buffers.push_back(&out);
  const auto shape = shape_of(1, 0, {1}, std::vector<Sizes>(buffers.size(), {1}));
  interpret(w.kernel, buffers.data(), shape.data(), nullptr, 0, 1);
  return out;
}

TEST(Interpret, IntegersWrap) {
  EXPECT_EQ((value_of<int8_t, int8_t>(Op::Add, Type::I8, Type::I8, {100, 100})), -56);
  EXPECT_EQ((value_of<int8_t, int8_t>(Op::Abs, Type::I8, Type::I8, {-5})), 5);
  EXPECT_EQ((value_of<uint8_t, uint8_t>(Op::Neg, Type::U8, Type::U8, {1})), 255);
  EXPECT_EQ((value_of<uint8_t, uint8_t>(Op::Not, Type::U8, Type::U8, {1})), 254);
  constexpr int64_t smallest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ((value_of<int64_t, int64_t>(Op::Abs, Type::I64, Type::I64, {smallest})), smallest);
  EXPECT_EQ((value_of<int32_t, int32_t>(Op::Mul, Type::I32, Type::I32, {1 << 20, 1 << 12})), 0);
}

TEST(Interpret, FloatsAreComputedInTheirType) {
  const float third = 1.0f / 3;
  EXPECT_EQ((value_of<float, float>(Op::Mul, Type::F32, Type::F32, {third, third})), third * third);
  EXPECT_EQ((value_of<double, double>(Op::Exp, Type::F64, Type::F64, {0.1})), std::exp(0.1));
  EXPECT_EQ((value_of<float, float>(Op::Round, Type::F32, Type::F32, {2.5f})), 2);
  EXPECT_EQ((value_of<float, float>(Op::Sigmoid, Type::F32, Type::F32, {0})), 0.5f);
}

TEST(Interpret, NotANumberIsKept) {
  const float nan = std::nanf("");
  for (Op op : {Op::Max, Op::Min}) {
    EXPECT_TRUE(std::isnan(value_of<float, float>(op, Type::F32, Type::F32, {nan, 1})));
    EXPECT_TRUE(std::isnan(value_of<float, float>(op, Type::F32, Type::F32, {1, nan})));
  }
  EXPECT_FALSE((value_of<bool, float>(Op::Eq, Type::Bool, Type::F32, {nan, nan})));
  EXPECT_TRUE((value_of<bool, float>(Op::Ne, Type::Bool, Type::F32, {nan, nan})));
}

TEST(Interpret, Casts) {
  EXPECT_EQ((value_of<uint8_t, int32_t>(Op::Cast, Type::U8, Type::I32, {-1})), 255);
  EXPECT_EQ((value_of<int32_t, float>(Op::Cast, Type::I32, Type::F32, {-2.7f})), -2);
  EXPECT_TRUE((value_of<bool, float>(Op::Cast, Type::Bool, Type::F32, {0.3f})));
  EXPECT_FALSE((value_of<bool, float>(Op::Cast, Type::Bool, Type::F32, {-0.0f})));
  EXPECT_TRUE((value_of<bool, int32_t>(Op::Cast, Type::Bool, Type::I32, {256})));
}

TEST(Interpret, FoldsOfAllElementsAlsoOfAnOperandThatDoesNotVary) {
  Written w;
  w.kernel.kept = 1;
  w.kernel.reduced = 2;
  w.kernel.width = 1;
  for (int i = 0; i < 4; ++i) w.buffer(Type::I64, Step::One);
  const int32_t row = w.expr(Op::Index, Type::I64, 0), cell = w.expr(Op::Index, Type::I64, 2),
                sum = w.expr(Op::ReduceSum, Type::I64, row), largest = w.expr(Op::ReduceMax, Type::I64, cell),
                least = w.expr(Op::ReduceMin, Type::I64, w.expr(Op::Sub, Type::I64, cell, largest)),
                product = w.expr(Op::ReduceProduct, Type::I64, largest);
  w.store(sum, 0);
  w.store(largest, 1);
  w.store(least, 2);
  w.store(product, 3);
  std::vector<int64_t> out(8);
  void* const buffers[] = {&out[0], &out[2], &out[4], &out[6]};
  const auto shape = shape_of(1, 0, {2, 3, 4}, std::vector<Sizes>(4, {1, 0, 0}));
  interpret(w.kernel, buffers, shape.data(), nullptr, 0, 2);
  EXPECT_EQ(out, (std::vector<int64_t>{0, 12, 3, 3, -3, -3, 531441, 531441}));
}

TEST(Interpret, RefusesWhatIsMalformed) {
  Kernel kernel = pointwise();
  kernel.width = 7;
  EXPECT_THROW(interpret(kernel, nullptr, nullptr, nullptr, 0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace tandem::loops
