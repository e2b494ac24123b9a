/// Autocast on the CPU while it lives.
#pragma once

#include <ATen/autocast_mode.h>

namespace tandem::test {

class Autocast {
 public:
  explicit Autocast(at::ScalarType dtype) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
  }
  ~Autocast() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::set_autocast_dtype(at::kCPU, before_);
  }
  Autocast(const Autocast&) = delete;

 private:
  at::ScalarType before_ = at::autocast::get_autocast_dtype(at::kCPU);
};

}  // namespace tandem::test
