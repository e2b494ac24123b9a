#include "loops/operators.h"

#include <array>
#include <sstream>

namespace tandem::loops {

namespace {

constexpr std::array step_names = {"zero", "one", "any"};

/// An expression's places; those that its operator does not read are told where something stands there, since
/// kernels that differ there are not equal.
void print_places(std::ostream& out, const Expr& expr) {
  const std::array places = {expr.a, expr.b, expr.c};
  const int32_t read = operator_of(expr.op).operands;
  int32_t count = 3;
  while (count > read && places[count - 1] == -1) --count;
  for (int32_t i = 0; i < count; ++i) out << ' ' << (i < read ? "%" : "") << places[i];
}

void print_dimensions(std::ostream& out, const Kernel& kernel) {
  out << kernel.kept << " kept, " << kernel.reduced << " reduced, " << kernel.width << " lanes "
      << (kernel.lane_kept ? "kept" : "reduced") << (kernel.cut ? ", cut" : "");
  if (kernel.numbers) out << ", " << kernel.numbers << " numbers";
  out << '\n';
}

void print_buffer(std::ostream& out, const Buffer& buffer) {
  out << name_of(buffer.type) << " lane " << step_names[static_cast<size_t>(buffer.lane)]
      << (buffer.reduced_varies ? " varies" : "");
}

}  // namespace

std::string to_string(const Kernel& kernel) {
  std::ostringstream out;
  print_dimensions(out, kernel);
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    out << "buffer " << i << ": ";
    print_buffer(out, kernel.buffers[i]);
    out << '\n';
  }
  for (size_t i = 0; i < kernel.exprs.size(); ++i) {
    const Expr& expr = kernel.exprs[i];
    out << '%' << i << ": " << name_of(expr.type) << " = " << operator_of(expr.op).name;
    print_places(out, expr);
    out << '\n';
  }
  for (const Store& store : kernel.stores) out << "store %" << store.expr << " to " << store.buffer << '\n';
  return out.str();
}

}  // namespace tandem::loops
