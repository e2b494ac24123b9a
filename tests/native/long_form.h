/// With TANDEM_NATIVE_LONG set, tests that grow with the number of their rounds do many.
#pragma once

#include <cstdlib>

template <class T>
T in_long_form(T many, T few) {
  return std::getenv("TANDEM_NATIVE_LONG") ? many : few;
}
