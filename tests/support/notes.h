/// An operator's kernel that leaves a trace of each call outside of its result.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace tandem::test {

inline std::vector<std::string>& notes() {
  static std::vector<std::string> all;
  return all;
}

inline at::Tensor note(const at::Tensor& x, int64_t tag) {
  notes().push_back(std::to_string(tag) + ": " + std::to_string(x.sum().item<float>()));
  return x * 2;
}

/// The same on the meta device.
inline at::Tensor note_shape(const at::Tensor& x, int64_t) { return at::empty_like(x); }

}  // namespace tandem::test
