#include "base/host.h"

namespace tandem {

std::function<void(const Error&)>& raise_in_host() {
  static auto* raise = new std::function<void(const Error&)>;
  return *raise;
}

}  // namespace tandem
