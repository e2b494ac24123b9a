/// Between which bounds everything lies that a launch of a kernel stores: the interpreter's loops, on ranges.
#pragma once

#include "support/random_kernels.h"
#include "support/value_ranges.h"

namespace tandem::loops {

/// A fold on its way, whatever the order in which it is taken.
class FoldedRange {
 public:
  FoldedRange(Op fold, Type type) : fold_(fold), type_(type) {}

  void add(const ValueRange& value) {
    if (kind_of(type_) != Floats) {
      total_ = count_++ ? range_of_integer(joining_, type_, type_, total_, value) : value;
      return;
    }
    ++count_;
    known_ = known_ && value.known;
    nan_ = nan_ || value.is_nan();
    if (!value.known || value.is_nan()) return;
    if (fold_ == Op::ReduceSum) return add_to_sum(value);
    if (fold_ == Op::ReduceProduct) return multiply(value);
    const bool largest = fold_ == Op::ReduceMax;
    if (count_of_numbers_++ == 0) total_ = value;
    total_ = largest ? settled(std::max(total_.low, value.low), std::max(total_.high, value.high))
                     : settled(std::min(total_.low, value.low), std::min(total_.high, value.high));
    known_ = known_ && total_.known;
  }

  /// NaN is what comes of NaN and of anything; everything else is known where all of it is.
  ValueRange value() const {
    if (kind_of(type_) != Floats) return total_;
    if (!known_) return ValueRange::unknown();
    if (nan_) return ValueRange::nan();
    if (fold_ == Op::ReduceSum) return sum();
    if (fold_ == Op::ReduceProduct) return product_of_all();
    return total_;
  }

 private:
  void add_to_sum(const ValueRange& value) {
    if (value.is_infinite()) {
      (value.low > 0 ? has_infinity_ : has_negative_infinity_) = true;
      return;
    }
    total_.low += value.low;
    total_.high += value.high;
    sizes_ += value.size();
  }

  ValueRange sum() const {
    const Precision& p = precision_of(type_);
    if (sizes_ > p.largest / 2) return ValueRange::unknown();
    if (has_infinity_ && has_negative_infinity_) return ValueRange::nan();
    if (has_infinity_) return {INFINITY, INFINITY};
    if (has_negative_infinity_) return {-INFINITY, -INFINITY};
    const long double error = static_cast<long double>(count_) * p.unit * sizes_ * 1.01L;
    return {total_.low - error, total_.high + error};
  }

  void multiply(const ValueRange& value) {
    total_ = count_of_numbers_++ ? over_corners(total_, value, std::multiplies<long double>()) : value;
    known_ = known_ && total_.known && !value.is_infinite();
    if (value.size() > 1) beyond_one_ *= value.size();
    if (value.size() < 1 && !(value.is_exact() && value.low == 0)) {
      if (value.holds(0)) known_ = false;
      below_one_ *= std::min(std::fabs(value.low), std::fabs(value.high));
    }
  }

  /// Parts of the product must neither overflow nor lose digits as denormals.
  ValueRange product_of_all() const {
    const Precision& p = precision_of(type_);
    if (beyond_one_ > p.largest / 2 || below_one_ < p.normal * 2) return ValueRange::unknown();
    if (total_.is_nan() || total_.is_infinite()) return ValueRange::unknown();
    return widened(total_, type_, static_cast<long double>(count_) * p.unit, 0);
  }

  static Op joining_of(Op fold) {
    constexpr Op operators[] = {Op::Add, Op::Mul, Op::Max, Op::Min};
    return operators[static_cast<int32_t>(fold) - static_cast<int32_t>(Op::ReduceSum)];
  }

  Op fold_;
  Type type_;
  Op joining_ = joining_of(fold_);
  ValueRange total_;
  long double sizes_ = 0, beyond_one_ = 1, below_one_ = 1;
  int64_t count_ = 0, count_of_numbers_ = 0;
  bool known_ = true, nan_ = false, has_infinity_ = false, has_negative_infinity_ = false;
};

/// What a launch is to store: for each element of each buffer its bounds, where it is stored to.
class Bounds {
 public:
  struct Element {
    bool stored = false;
    ValueRange range;
  };

  explicit Bounds(const Case& launch)
      : launch_(launch),
        kernel_(launch.kernel),
        varies_(varying(kernel_)),
        passes_(passes(kernel_)),
        place_(kernel_.rank()),
        values_(kernel_.exprs.size()) {
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      elements_.emplace_back(launch.buffers[i].size() / bytes_of(kernel_.buffers[i].type));
    go_through(0, kernel_.kept, [&] { run_place(); });
  }

  const std::vector<Element>& of_buffer(size_t buffer) const { return elements_[buffer]; }

 private:
  int64_t end_of(int32_t dimension) const {
    const int64_t size = launch_.sizes()[dimension];
    if (!kernel_.cut || dimension != kernel_.kept) return size;
    return std::min(size, launch_.shape[1] - place_[0] * size);
  }

  template <class Visit>
  void go_through(int32_t dimension, int32_t end, Visit visit) {
    if (dimension == end) return visit();
    for (place_[dimension] = 0; place_[dimension] < end_of(dimension); ++place_[dimension])
      go_through(dimension + 1, end, visit);
    place_[dimension] = 0;
  }

  void run_place() {
    const int32_t last = *std::ranges::max_element(passes_);
    for (int32_t pass = 0; pass <= last; ++pass) {
      evaluate_all([&](size_t i) { return !varies_[i] && passes_[i] == pass; });
      store_all(pass, false);
      std::vector<FoldedRange> folds;
      for (const Expr& expr : kernel_.exprs)
        folds.emplace_back(is_fold(expr) ? expr.op : Op::ReduceSum, expr.type);
      go_through(kernel_.kept, kernel_.rank(), [&] {
        evaluate_all([&](size_t i) { return varies_[i] && passes_[i] <= pass; });
        store_all(pass, true);
        for (size_t i = 0; i < folds.size(); ++i)
          if (is_fold(kernel_.exprs[i]) && passes_[i] == pass + 1) folds[i].add(values_[kernel_.exprs[i].a]);
      });
      for (size_t i = 0; i < folds.size(); ++i)
        if (is_fold(kernel_.exprs[i]) && passes_[i] == pass + 1) values_[i] = folds[i].value();
    }
  }

  template <class Wanted>
  void evaluate_all(Wanted wanted) {
    for (size_t i = 0; i < values_.size(); ++i)
      if (!is_fold(kernel_.exprs[i]) && wanted(i)) values_[i] = evaluated(kernel_.exprs[i]);
  }

  ValueRange evaluated(const Expr& expr) const {
    const auto operand = [&](int32_t place) { return place < 0 ? ValueRange{} : values_[place]; };
    const ValueRange a = operand(expr.op < Op::Neg ? -1 : expr.a), b = operand(expr.b), c = operand(expr.c);
    if (expr.op == Op::Load)
      return exactly(read(expr.type, launch_.buffers[expr.a].data(), offset(expr.a)), expr.type);
    if (expr.op == Op::Number) return exactly(of_number(expr.type, launch_.numbers[expr.a]), expr.type);
    if (expr.op == Op::Offset) return exactly({.integer = offset(expr.a)}, expr.type);
    if (expr.op == Op::Index) return exactly({.integer = place_[expr.a]}, expr.type);
    const Type from = kernel_.exprs[expr.a].type;
    if (expr.op == Op::Cast) return converted_range(from, expr.type, a);
    if (expr.op == Op::Select) return selected_range(expr.type, a, b, c);
    if (kind_of(from) != Floats) return range_of_integer(expr.op, from, expr.type, a, b);
    if (expr.type == Type::Bool) return compared(expr.op, a, b);
    return range_of_float(expr.op, expr.type, a, b);
  }

  int64_t offset(int32_t buffer) const {
    int64_t offset = 0;
    for (int32_t i = 0; i < kernel_.rank(); ++i) offset += place_[i] * launch_.strides(buffer)[i];
    return offset;
  }

  void store_all(int32_t pass, bool varying) {
    for (const Store& store : kernel_.stores)
      if (passes_[store.expr] == pass && varies_[store.expr] == varying)
        elements_[store.buffer][offset(store.buffer)] = {true, values_[store.expr]};
  }

  const Case& launch_;
  const Kernel& kernel_;
  std::vector<bool> varies_;
  std::vector<int32_t> passes_;
  std::vector<int64_t> place_;
  std::vector<ValueRange> values_;
  std::vector<std::vector<Element>> elements_;
};

}  // namespace tandem::loops
