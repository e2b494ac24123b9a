/// Single values of kernels: what each operator makes of them, and how they lie in memory.
#pragma once

#include "loops/operators.h"

namespace tandem::loops {

/// The member that its type says: integers and Bool are in `integer`, as the number that they stand for.
union Scalar {
  int64_t integer;
  float single;
  double real;
};

using Compute = Scalar (*)(Scalar a, Scalar b, Scalar c);

/// What `op` computes from operands of the type `from`, as a value of the type `to`; not of leaves and folds.
Compute compute_of(Op op, Type from, Type to);

Scalar read(Type type, const void* memory, int64_t place);
void write(Type type, Scalar value, void* memory, int64_t place);
Scalar of_number(Type type, Number number);

/// A fold on its way. Sums and products of floating point are held wider than their type.
class Total {
 public:
  Total(Op fold, Type type);
  void clear();
  void add(Scalar value);
  Scalar value() const;

 private:
  Type type_;
  bool is_product_, is_wide_;
  Compute add_;
  Scalar empty_, narrow_;
  long double wide_ = 0;
};

}  // namespace tandem::loops
