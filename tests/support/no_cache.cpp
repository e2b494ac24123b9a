// Linked into every test program but that of the cache: what an earlier run compiled must not change what is
// counted.
#include <cstdlib>

namespace {

const bool switched_off = setenv("TANDEM_CACHE", "off", /*overwrite=*/0) == 0;

}  // namespace
