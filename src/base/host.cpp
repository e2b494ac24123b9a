#include "base/host.h"

namespace tandem {

std::function<void(const Error&)>& raise_in_host() {
  static auto* raise = new std::function<void(const Error&)>;
  return *raise;
}

std::function<void()>& drop_garbage() {
  static auto* drop = new std::function<void()>;
  return *drop;
}

}  // namespace tandem
