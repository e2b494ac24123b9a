// For Python's sweeps: between the two calls, operators of this thread round otherwise.
#include <memory>

#include "fuzz/shaken_operators.h"

namespace {

thread_local std::unique_ptr<tandem::fuzz::ShakenOperators> otherwise;

}  // namespace

extern "C" [[gnu::visibility("default")]] void tandem_shake(uint64_t seed) {
  otherwise = std::make_unique<tandem::fuzz::ShakenOperators>(seed);
}
extern "C" [[gnu::visibility("default")]] void tandem_stop_shaking() { otherwise.reset(); }
