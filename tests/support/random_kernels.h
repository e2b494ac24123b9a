/// Random kernels with what a launch of them needs, each from a seed alone.
#pragma once

#include "loops/operators.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

namespace tandem::loops {

struct Case {
  uint64_t seed = 0;
  Kernel kernel;
  std::vector<int64_t> shape;
  std::vector<Number> numbers;
  std::vector<std::vector<uint8_t>> buffers;

  const int64_t* sizes() const { return shape.data() + shape_header; }
  const int64_t* strides(int32_t buffer) const { return sizes() + (1 + buffer) * kernel.rank(); }

  int64_t units() const {
    int64_t units = std::accumulate(sizes(), sizes() + kernel.kept, int64_t{1}, std::multiplies<>());
    if (!kernel.lane_kept) return units;
    const int64_t lanes = sizes()[kernel.lane()];
    return units / lanes * ((lanes + shape[0] - 1) / shape[0]);
  }
};

inline int64_t bytes_of(Type type) {
  constexpr int64_t bytes[] = {1, 1, 1, 2, 4, 8, 4, 8};
  return bytes[static_cast<size_t>(type)];
}

/// Whether an expression of an operator and a type may occur.
using Allowed = std::function<bool(Op, Type)>;

class RandomCase {
 public:
  RandomCase(uint64_t seed, const Allowed& allowed) : allowed_(allowed), random_(seed) {
    made_.seed = seed;
    choose_dimensions();
    for (int64_t i = 1 + below(4); i > 0; --i) add_loaded_buffer();
    add_leaves();
    const size_t count = made_.kernel.exprs.size() + 1 + below(15 - made_.kernel.exprs.size());
    for (int tries = 0; tries < 300 && made_.kernel.exprs.size() < count; ++tries) try_expr();
    add_stores();
    finish_shape();
    fill();
  }

  Case take() { return std::move(made_); }

 private:
  int64_t below(int64_t count) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(count)); }
  bool once_in(int64_t count) { return below(count) == 0; }
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  Kernel& kernel() { return made_.kernel; }

  void choose_dimensions() {
    Kernel& k = kernel();
    k.kept = 1 + static_cast<int32_t>(below(3));
    k.reduced = std::array{0, 0, 1, 1, 1, 2}[below(6)];
    k.lane_kept = k.reduced == 0 || once_in(2);
    k.width = std::array{32, 8, 1}[below(3)];
    k.cut = k.reduced > 0 && k.kept > k.lane_kept && once_in(3);
    for (int32_t i = 0; i < k.rank(); ++i) sizes_.push_back(1 + below(4));
    int64_t& lanes = sizes_[k.lane()];
    lanes = k.width + below(once_in(4) ? 8 * k.width : 2 * k.width + 2);
    if (k.width == 1) lanes += below(5);
    unit_lanes_ = once_in(4) ? 1 + below(lanes) : k.width * (1 + below(4));
    if (k.cut) choose_cut();
  }

  /// A last piece of lanes has to have enough of them.
  void choose_cut() {
    const int64_t length = sizes_[kernel().kept];
    const int64_t least = kernel().lane() == kernel().kept ? kernel().width : 1;
    cut_length_ = (sizes_[0] - 1) * length + least + below(length - least + 1);
  }

  Type random_type() {
    constexpr std::array types = {Type::F32,  Type::F32, Type::F32, Type::F32, Type::F64, Type::F64,
                                  Type::Bool, Type::U8,  Type::I8,  Type::I16, Type::I32, Type::I64};
    return types[below(types.size())];
  }

  int32_t add_buffer(const Buffer& buffer, const std::vector<int64_t>& strides) {
    kernel().buffers.push_back(buffer);
    strides_.push_back(strides);
    int64_t last = 0;
    for (int32_t i = 0; i < kernel().rank(); ++i) last += (sizes_[i] - 1) * strides[i];
    made_.buffers.emplace_back((last + 1) * bytes_of(buffer.type));
    return static_cast<int32_t>(kernel().buffers.size()) - 1;
  }

  /// Places of one that is only loaded may meet.
  void add_loaded_buffer() {
    Type type = random_type();
    while (!allowed_(Op::Load, type)) type = random_type();
    const bool varies = kernel().reduced > 0 && !once_in(3);
    Step lane = static_cast<Step>(below(3));
    if (!kernel().lane_kept && !varies) lane = Step::Zero;
    std::vector<int64_t> strides(kernel().rank(), 0);
    for (int32_t i = 0; i < (varies ? kernel().rank() : kernel().kept); ++i)
      strides[i] = std::array<int64_t, 5>{0, 1, 2, sizes_[kernel().lane()], 7}[below(5)];
    strides[kernel().lane()] = lane == Step::Any ? below(4) : static_cast<int64_t>(lane);
    add_buffer({type, lane, varies}, strides);
  }

  void add_leaves() {
    for (size_t i = 0; i < kernel().buffers.size(); ++i)
      add_expr(Op::Load, kernel().buffers[i].type, static_cast<int32_t>(i));
    for (int64_t i = below(3); i > 0; --i)
      if (const Type type = random_type(); allowed_(Op::Number, type))
        add_expr(Op::Number, type, kernel().numbers++);
    if (once_in(3) && allowed_(Op::Index, Type::I64))
      add_expr(Op::Index, Type::I64, static_cast<int32_t>(below(kernel().rank())));
    if (made_.seed % 3 == 0 && allowed_(Op::Offset, Type::I64))
      add_expr(Op::Offset, made_.seed % 2 ? Type::I32 : Type::I64, 0);
  }

  void add_expr(Op op, Type type, int32_t a, int32_t b = -1, int32_t c = -1) {
    kernel().exprs.push_back({op, type, a, b, c});
  }

  Op random_op() {
    constexpr auto first = static_cast<int32_t>(Op::Neg), first_fold = static_cast<int32_t>(Op::ReduceSum);
    if (kernel().reduced > 0 && once_in(5)) return static_cast<Op>(first_fold + below(4));
    return static_cast<Op>(first + below(first_fold - first));
  }

  /// Rather a late one, so that expressions become deep.
  int32_t random_place() {
    const auto count = static_cast<int64_t>(kernel().exprs.size());
    return static_cast<int32_t>(std::max(below(count), below(count)));
  }

  int32_t place_of_type(Type type) {
    for (int tries = 0; tries < 20; ++tries)
      if (const int32_t place = random_place(); kernel().exprs[place].type == type) return place;
    return -1;
  }

  void try_expr() {
    const Op op = random_op();
    const Operator& facts = operator_of(op);
    const int32_t a = facts.kind == Kind::Select ? place_of_type(Type::Bool) : random_place();
    if (a < 0 || !(facts.types & kind_of(kernel().exprs[a].type))) return;
    const Type from = kernel().exprs[a].type;
    Type type = facts.kind == Kind::Comparison ? Type::Bool : facts.kind == Kind::Cast ? random_type() : from;
    int32_t b = -1, c = -1;
    if (facts.kind == Kind::Select) {
      b = random_place();
      type = kernel().exprs[b].type;
      c = place_of_type(type);
    } else if (facts.operands == 2) {
      b = place_of_type(from);
    }
    if ((facts.operands > 1 && b < 0) || (facts.operands > 2 && c < 0) || !allowed_(op, type)) return;
    add_expr(op, type, a, b, c);
  }

  void add_stores() {
    const std::vector<bool> varies = varying(kernel());
    int32_t expr = static_cast<int32_t>(kernel().exprs.size()) - 1;
    for (int64_t i = 1 + below(3); i > 0; --i, expr = random_place())
      kernel().stores.push_back({expr, add_stored_buffer(kernel().exprs[expr].type, varies[expr])});
  }

  /// No two places of one that is stored to meet: its dimensions lie one within the other, with gaps.
  int32_t add_stored_buffer(Type type, bool varies) {
    const int32_t lane = kernel().lane();
    std::vector<int32_t> inner_first(varies ? kernel().rank() : kernel().kept);
    std::iota(inner_first.begin(), inner_first.end(), 0);
    std::shuffle(inner_first.begin(), inner_first.end(), random_);
    const bool moves = lane < std::ssize(inner_first), dense = moves && !once_in(3);
    if (dense) std::iter_swap(inner_first.begin(), std::ranges::find(inner_first, lane));
    std::vector<int64_t> strides(kernel().rank(), 0);
    int64_t stride = dense ? 1 : 1 + below(2);
    for (int32_t dim : inner_first) {
      strides[dim] = stride;
      stride = stride * sizes_[dim] + below(2);
    }
    return add_buffer({type, dense ? Step::One : moves ? Step::Any : Step::Zero, varies}, strides);
  }

  void finish_shape() {
    made_.shape = {unit_lanes_, cut_length_};
    made_.shape.insert(made_.shape.end(), sizes_.begin(), sizes_.end());
    for (const auto& strides : strides_)
      made_.shape.insert(made_.shape.end(), strides.begin(), strides.end());
  }

  double random_real(bool special) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr std::array specials = {
        infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), -0.0, 0.0, 0x1p-140, -0x1p-1050, 3e38,
        -1e308,   1e-30};
    if (special && once_in(150)) return specials[below(specials.size())];
    if (once_in(4)) return static_cast<double>(below(9) - 4);
    return (4 * uniform() - 2) * std::array{1.0, 1.0, 1.0, 0.01, 30.0}[below(5)];
  }

  int64_t random_integer() { return once_in(4) ? static_cast<int64_t>(random_()) : below(9) - 4; }

  template <class T>
  void put(std::vector<uint8_t>& bytes, size_t place, T value) {
    std::memcpy(bytes.data() + place * sizeof(T), &value, sizeof(T));
  }

  void fill(std::vector<uint8_t>& bytes, Type type) {
    const bool special = once_in(4);
    const size_t size = bytes_of(type);
    for (size_t i = 0; i < bytes.size() / size; ++i) {
      const int64_t integer = random_integer();
      if (type == Type::F32) {
        put(bytes, i, static_cast<float>(random_real(special)));
      } else if (type == Type::F64) {
        put(bytes, i, random_real(special));
      } else if (type == Type::Bool) {
        put(bytes, i, static_cast<uint8_t>(integer & 1));
      } else {
        std::memcpy(bytes.data() + i * size, &integer, size);
      }
    }
  }

  void fill() {
    for (size_t i = 0; i < made_.buffers.size(); ++i) fill(made_.buffers[i], kernel().buffers[i].type);
    made_.numbers.resize(kernel().numbers);
    for (const Expr& expr : kernel().exprs)
      if (expr.op == Op::Number) made_.numbers[expr.a] = random_number(expr.type);
  }

  /// One that its type holds.
  Number random_number(Type type) {
    if (type == Type::F32) return {.real = static_cast<float>(random_real(true))};
    if (type == Type::F64) return {.real = random_real(true)};
    return {.integer = type == Type::Bool || type == Type::U8 ? below(2) : below(200) - 100};
  }

  const Allowed& allowed_;
  std::mt19937_64 random_;
  Case made_;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<int64_t>> strides_;
  int64_t unit_lanes_ = 1, cut_length_ = 0;
};

inline Case make_case(uint64_t seed, const Allowed& allowed = [](Op, Type) { return true; }) {
  return RandomCase(seed, allowed).take();
}

}  // namespace tandem::loops
