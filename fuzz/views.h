/// How given tensors lie in memory and share it; text and code of a view are one expression.
#pragma once

#include "fuzz/program.h"

namespace tandem::fuzz {

struct GivenView {
  const char* text;  ///< of `x`
  at::Tensor (*run)(const at::Tensor& x);
};
const std::vector<GivenView>& given_views();

/// Fresh numbers: normal ones, or small integers.
at::Tensor numbers(at::ScalarType dtype, const Ints& sizes);

/// A tensor of these sizes that lies as asked in memory made by `make`, which is given its sizes.
template <class Make>
auto laid_out(Layout layout, Ints sizes, const Make& make) {
  if (sizes.empty()) return make(sizes);
  if (layout == Layout::Transposed) {
    std::swap(sizes.front(), sizes.back());
    return make(sizes).transpose(0, -1);
  }
  if (layout == Layout::Strided) {
    sizes.back() *= 2;
    return make(sizes).slice(-1, 0, sizes.back(), 2);
  }
  if (layout == Layout::Expanded) {
    const int64_t wanted = std::exchange(sizes.front(), 1);
    Ints full = sizes;
    full.front() = wanted;
    return make(sizes).expand(full);
  }
  return make(sizes);
}

}  // namespace tandem::fuzz
