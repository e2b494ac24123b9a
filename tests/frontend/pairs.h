/// Types made of several tensors, for tests.
#pragma once

#include <tandem/tandem.h>
#include <torch/torch.h>

namespace tandem::test {

struct Pair {
  at::Tensor a, b;
};
inline Pair operator+(const Pair& x, const Pair& y) { return {x.a + y.a, x.b + y.b}; }
inline Pair operator*(const Pair& x, const Pair& y) { return {x.a * y.a, x.b * y.b}; }
inline Pair operator*(const Pair& x, double s) { return {x.a * s, x.b * s}; }
inline Pair operator+(const Pair& x, const at::Tensor& t) { return {x.a + t, x.b + t}; }
inline Pair operator*(const Pair& x, const at::Tensor& t) { return {x.a * t, x.b * t}; }

/// A tensor and a constant.
struct Scaled {
  at::Tensor value;
  double scale = 1;
};

/// Wrappers of wrappers of different kinds, with a constant of its own.
struct Nested {
  Pair inner;
  Scaled scaled;
  std::string kind;
};
inline Nested operator*(const Nested& x, const Nested& y) {
  return {x.inner * y.inner, {x.scaled.value * y.scaled.value * x.scaled.scale, x.scaled.scale}, x.kind};
}

/// Rows of different lengths behind each other; lengths or offsets may be missing.
struct Jagged {
  at::Tensor values;
  std::optional<at::Tensor> offsets, lengths;
};

/// A class that says itself how it is taken apart, and makes tensors on the way: it keeps the double of what
/// it was made of.
class Twice {
 public:
  explicit Twice(const at::Tensor& once) : value_(once * 2) {}
  const at::Tensor& value() const { return value_; }

 private:
  at::Tensor value_;
};

}  // namespace tandem::test

template <>
struct tandem::Pack<tandem::test::Twice> {
  static void write(const test::Twice& twice, Writer& to) { to.write_part("once", twice.value() / 2); }
  static test::Twice read(Reader& from) { return test::Twice(from.read<at::Tensor>()); }
};
