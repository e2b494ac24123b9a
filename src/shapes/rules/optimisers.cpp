#include "shapes/rules/helpers.h"

namespace tandem::rules {
namespace {

/// These write lists of tensors in place and return nothing.
void nothing(ShapeCall&) {}

constexpr Row optimisers_rows[] = {
    {"aten::_fused_adam_", nothing},    {"aten::_fused_adam_.tensor_lr", nothing},
    {"aten::_fused_adamw_", nothing},   {"aten::_fused_adamw_.tensor_lr", nothing},
    {"aten::_fused_sgd_", nothing},     {"aten::_fused_sgd_.tensor_lr", nothing},
    {"aten::_fused_adagrad_", nothing},
};

}  // namespace

std::span<const Row> optimisers() { return optimisers_rows; }

}  // namespace tandem::rules
