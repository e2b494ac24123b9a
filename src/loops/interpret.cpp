#include "loops/scalar.h"

#include <algorithm>

namespace tandem::loops {

namespace {

/// A launch, and where the loops of one nest are.
class Nest {
 public:
  Nest(const Kernel& kernel, void* const* buffers, const int64_t* shape, const Number* numbers)
      : kernel_(kernel),
        buffers_(buffers),
        unit_lanes_(shape[0]),
        cut_length_(shape[1]),
        sizes_(shape + shape_header),
        strides_(sizes_ + kernel.rank()),
        varies_(varying(kernel)),
        passes_(passes(kernel)),
        last_pass_(passes_.empty() ? 0 : *std::ranges::max_element(passes_)),
        place_(kernel.rank()),
        ends_(sizes_, sizes_ + kernel.rank()),
        values_(kernel.exprs.size()) {
    for (const Expr& expr : kernel.exprs) prepare(expr, numbers);
  }

  void run_unit(int64_t unit) {
    int64_t lanes_begin = 0, lanes_end = 1;
    if (kernel_.lane_kept) {
      const int64_t size = sizes_[kernel_.lane()], pieces = (size + unit_lanes_ - 1) / unit_lanes_;
      lanes_begin = unit % pieces * unit_lanes_;
      lanes_end = std::min(size, lanes_begin + unit_lanes_);
      unit /= pieces;
    }
    for (int32_t i = kernel_.kept - 1 - kernel_.lane_kept; i >= 0; --i) {
      place_[i] = unit % sizes_[i];
      unit /= sizes_[i];
    }
    for (int64_t lane = lanes_begin; lane < lanes_end; ++lane) {
      if (kernel_.lane_kept) place_[kernel_.lane()] = lane;
      run_place();
    }
  }

 private:
  void prepare(const Expr& expr, const Number* numbers) {
    const Kind kind = operator_of(expr.op).kind;
    const bool computes = kind != Kind::Leaf && kind != Kind::Fold;
    const Type from = kind == Kind::Leaf ? expr.type : kernel_.exprs[expr.a].type;
    computes_.push_back(computes ? compute_of(expr.op, from, expr.type) : nullptr);
    totals_.emplace_back(kind == Kind::Fold ? expr.op : Op::ReduceSum, expr.type);
    if (expr.op == Op::Number) values_[&expr - kernel_.exprs.data()] = of_number(expr.type, numbers[expr.a]);
  }

  void run_place() {
    if (kernel_.cut) {
      const int64_t length = sizes_[kernel_.kept];
      ends_[kernel_.kept] = std::min(length, cut_length_ - place_[0] * length);
    }
    for (int32_t pass = 0; pass <= last_pass_; ++pass) run_pass(pass);
  }

  /// What does not vary, then the loops along the reduced dimensions, then the folds that these finish.
  void run_pass(int32_t pass) {
    std::fill(place_.begin() + kernel_.kept, place_.end(), 0);
    for (size_t i = 0; i < values_.size(); ++i)
      if (!varies_[i] && passes_[i] == pass && !is_fold(kernel_.exprs[i])) evaluate(i);
    store(pass, false);
    for (Total& total : totals_) total.clear();
    for (bool more = begin_reduced(); more; more = next_reduced()) run_reduced_place(pass);
    for (size_t i = 0; i < values_.size(); ++i)
      if (passes_[i] == pass + 1 && is_fold(kernel_.exprs[i])) values_[i] = totals_[i].value();
  }

  void run_reduced_place(int32_t pass) {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (varies_[i] && passes_[i] <= pass) evaluate(i);
      if (passes_[i] == pass + 1 && is_fold(kernel_.exprs[i])) totals_[i].add(values_[kernel_.exprs[i].a]);
    }
    store(pass, true);
  }

  bool begin_reduced() const {
    return std::all_of(ends_.begin() + kernel_.kept, ends_.end(), [](int64_t end) { return end > 0; });
  }

  bool next_reduced() {
    for (int32_t i = kernel_.rank() - 1; i >= kernel_.kept; --i) {
      if (++place_[i] < ends_[i]) return true;
      place_[i] = 0;
    }
    return false;
  }

  void evaluate(size_t i) {
    const Expr& expr = kernel_.exprs[i];
    if (expr.op == Op::Load) {
      values_[i] = read(expr.type, buffers_[expr.a], offset(expr.a));
    } else if (expr.op == Op::Index) {
      values_[i].integer = place_[expr.a];
    } else if (expr.op == Op::Offset) {
      values_[i].integer = offset(expr.a);
    } else if (expr.op != Op::Number) {
      values_[i] = computes_[i](operand(expr.a), operand(expr.b), operand(expr.c));
    }
  }

  Scalar operand(int32_t place) const { return place < 0 ? Scalar{} : values_[place]; }

  void store(int32_t pass, bool varying) {
    for (const Store& store : kernel_.stores)
      if (passes_[store.expr] == pass && varies_[store.expr] == varying)
        write(kernel_.exprs[store.expr].type, values_[store.expr], buffers_[store.buffer],
              offset(store.buffer));
  }

  int64_t offset(int32_t buffer) const {
    const int64_t* strides = strides_ + int64_t{buffer} * kernel_.rank();
    int64_t offset = 0;
    for (int32_t i = 0; i < kernel_.rank(); ++i) offset += place_[i] * strides[i];
    return offset;
  }

  const Kernel& kernel_;
  void* const* buffers_;
  int64_t unit_lanes_, cut_length_;
  const int64_t* sizes_;
  const int64_t* strides_;
  std::vector<bool> varies_;
  std::vector<int32_t> passes_;
  int32_t last_pass_;
  std::vector<int64_t> place_, ends_;  ///< ends differ from the sizes in the last piece of a cut
  std::vector<Scalar> values_;
  std::vector<Compute> computes_;
  std::vector<Total> totals_;  ///< of no use where the expression is no fold
};

}  // namespace

void interpret(const Kernel& kernel, void* const* buffers, const int64_t* shape, const Number* numbers,
               int64_t begin, int64_t end) {
  verify(kernel);
  Nest nest(kernel, buffers, shape, numbers);
  for (int64_t unit = begin; unit < end; ++unit) nest.run_unit(unit);
}

}  // namespace tandem::loops
