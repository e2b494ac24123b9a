#include "trace/one_hot.h"

#include <ATen/ATen.h>

namespace tandem {

std::optional<at::Tensor> spread_classes(const at::Tensor& classes, int64_t count) {
  const bool is_looked_at =
      classes.scalar_type() == at::kLong && classes.device().is_cpu() && classes.numel() > 0;
  if (count < 0 || !is_looked_at) return std::nullopt;
  at::_assert_async(classes.min().ge(0), "Class values must be non-negative.");
  at::_assert_async(classes.max().lt(count), "Class values must be smaller than num_classes.");
  std::vector<int64_t> sizes = classes.sizes().vec();
  sizes.push_back(count);
  return at::zeros(sizes, classes.options()).scatter_(-1, classes.unsqueeze(-1), 1);
}

}  // namespace tandem
