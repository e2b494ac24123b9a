/// What a fused loop computes, for any target: a nest over an iteration space, a DAG of expressions, and what
/// is stored where. Sizes, strides and numbers are no part of it; they come with each launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::loops {

/// Of elements in memory, and of values on their way; a Bool is a byte in memory.
enum class Type : uint8_t { Bool, U8, I8, I16, I32, I64, F32, F64 };

enum class Op : uint8_t {
  Load,    ///< the element of buffer `a` at the place of the loops
  Number,  ///< number `a` of the launch
  Index,   ///< where the loops are in dimension `a`, an I64
  Offset,  ///< how far the place of the loops is in buffer `a`, in elements, an I32 or I64; no memory is read
  // Of one operand, of its type.
  Neg,
  Abs,
  Not,  ///< of Bool, and bit by bit of integers
  Sqrt,
  Floor,
  Ceil,
  Round,  ///< to the nearest, halves to even
  Trunc,
  Exp,
  Expm1,
  Log,
  Log1p,
  Tanh,
  Erf,
  Sigmoid,
  Sin,
  Cos,
  // Of two operands of one type.
  Add,
  Sub,
  Mul,
  Div,  ///< of floating point
  Max,  ///< NaN where either operand is
  Min,
  And,  ///< of Bool and of integers; so are Or and Xor
  Or,
  Xor,
  // Of two operands of one type, giving a Bool.
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  // Of other kinds.
  Cast,    ///< from any type to any, as C++ converts; to Bool: whether it is not 0
  Select,  ///< `a` is a Bool: `b` where it is true, else `c`
  // Of all elements of one operand along the reduced dimensions.
  ReduceSum,
  ReduceProduct,
  ReduceMax,  ///< NaN where an element is; so is ReduceMin
  ReduceMin,
};

/// One expression; operands are places of expressions before it.
struct Expr {
  Op op;
  Type type;  ///< of its value
  int32_t a = -1, b = -1, c = -1;
  friend bool operator==(const Expr&, const Expr&) = default;
};

/// What is known ahead of how far neighbours along the lanes lie apart.
enum class Step : uint8_t { Zero, One, Any };

/// Memory that a launch is given; its strides, in elements, come with the launch.
struct Buffer {
  Type type;
  Step lane;  ///< along the lane dimension
  /// whether it has other elements at other places along the reduced dimensions; one that is stored to varies
  /// where the stored expression does
  bool reduced_varies = false;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

struct Store {
  int32_t expr, buffer;
  friend bool operator==(const Store&, const Store&) = default;
};

/// For each place of the kept dimensions the expressions are evaluated: once where they do not vary along the
/// reduced ones, else at every place along these. What folds along them is done when what reads it begins, so
/// a nest goes through the reduced dimensions as many times, one behind the other, as folds read folds.
///
/// Neighbours along one dimension are computed side by side, as lanes: along the last reduced one, or along
/// the last kept one. Their number is at least `width`; places at the end may be computed twice.
struct Kernel {
  int32_t kept = 0, reduced = 0;  ///< how many dimensions; kept ones come first
  bool lane_kept = true;  ///< lanes are neighbours along the last kept dimension, not the last reduced
  int32_t width = 32;     ///< lanes: 1, 8, 16, 32 or 64
  /// The first reduced dimension was cut into pieces, of which the first kept dimension is the number. All
  /// are as long but the last, which ends where Launch::cut_length does.
  bool cut = false;
  int32_t numbers = 0;
  std::vector<Buffer> buffers;
  std::vector<Expr> exprs;
  std::vector<Store> stores;  ///< no two to one buffer; no buffer is both loaded and stored
  friend bool operator==(const Kernel&, const Kernel&) = default;

  int32_t rank() const { return kept + reduced; }
  int32_t lane() const { return (lane_kept ? kept : rank()) - 1; }
};

/// A number of a launch, in the type that its expression has: integers and Bool as `integer`.
union Number {
  double real;
  int64_t integer;
};

/// Machine code of a kernel: computes the units `begin` to `end`. A unit is a place of the kept dimensions
/// (the last one runs fastest); where lanes are kept, the last kept dimension counts in pieces of
/// `unit_lanes` elements, of which the last one may be shorter. `shape` holds unit_lanes, cut_length, the
/// sizes of all dimensions, then for each buffer its strides along all dimensions, in elements.
using Code = void (*)(void* const* buffers, const int64_t* shape, const Number* numbers, int64_t begin,
                      int64_t end);

constexpr int32_t shape_header = 2;

/// Whether the value of each expression varies along the reduced dimensions.
std::vector<bool> varying(const Kernel& kernel);
/// For each expression how often the reduced dimensions were gone through before it is known: 0 where it
/// reads no fold, one more than its operand for a fold.
std::vector<int32_t> passes(const Kernel& kernel);

/// Readable text that says all of it; equal texts are equal kernels.
std::string to_string(const Kernel& kernel);

/// Throws std::invalid_argument, with what is wrong, unless it is well formed.
void verify(const Kernel& kernel);

/// The description taken at its word, element by element: the judge of machine code. Computes the units
/// `begin` to `end` as Code does.
void interpret(const Kernel& kernel, void* const* buffers, const int64_t* shape, const Number* numbers,
               int64_t begin, int64_t end);

}  // namespace tandem::loops
