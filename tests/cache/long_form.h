/// With TANDEM_CACHE_LONG set, tests that grow with the number of their rounds do as many as docs/cache.md
/// has figures of.
#pragma once

#include <cstdlib>

template <class T>
T in_long_form(T many, T few) {
  return std::getenv("TANDEM_CACHE_LONG") ? many : few;
}
