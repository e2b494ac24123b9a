#include "fuzz/views.h"

#include <ATen/ATen.h>

#define GIVEN_VIEW(...) {#__VA_ARGS__, [](const at::Tensor& x) -> at::Tensor { return __VA_ARGS__; }}

namespace tandem::fuzz {

const std::vector<GivenView>& given_views() {
  static const std::vector<GivenView> views = {
      GIVEN_VIEW(x.alias()),     GIVEN_VIEW(x.select(0, 0)),     GIVEN_VIEW(x.slice(0, 0, 1)),
      GIVEN_VIEW(x.slice(0, 1)), GIVEN_VIEW(x.transpose(0, -1)), GIVEN_VIEW(x.reshape({-1})),
      GIVEN_VIEW(x.detach()),    GIVEN_VIEW(x.unsqueeze(0)),
  };
  return views;
}

}  // namespace tandem::fuzz
