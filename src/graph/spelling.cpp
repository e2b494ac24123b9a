#include "graph/spelling.h"

#include <bit>

namespace tandem {

void spell(std::string& to, char kind, int64_t number) {
  to += kind;
  to.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

bool spell(std::string& to, const c10::IValue& constant) {
  auto as = [&](char kind, int64_t number) {
    spell(to, kind, number);
    return true;
  };
  if (constant.isNone()) return as('n', 0);
  if (constant.isBool()) return as('b', constant.toBool());
  if (constant.isInt()) return as('i', constant.toInt());
  if (constant.isDouble()) return as('d', std::bit_cast<int64_t>(constant.toDouble()));
  if (constant.isComplexDouble()) {
    const c10::complex<double> number = constant.toComplexDouble();
    return as('c', std::bit_cast<int64_t>(number.real())) && as('c', std::bit_cast<int64_t>(number.imag()));
  }
  if (constant.isString()) {
    spell(to, 's', int64_t(constant.toStringRef().size()));
    to += constant.toStringRef();
    return true;
  }
  if (constant.isDevice())
    return as('D', int64_t(constant.toDevice().type())) && as('D', constant.toDevice().index());
  if (!constant.isList()) return false;
  spell(to, 'L', int64_t(constant.toListRef().size()));
  for (const c10::IValue& element : constant.toListRef())
    if (!spell(to, element)) return false;
  return true;
}

}  // namespace tandem
