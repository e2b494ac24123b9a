// What is special about single operators, and about families of them.
#include "ops/table.h"

namespace tandem {

using enum Kind;
using enum Flag;

static const FactRow special_table[] = {
    // name, kind, cost, flags
    // Must run though nothing reads them.
    {"aten::_functional_assert_async", Other, 1, SideEffect},
    {"aten::record_stream", Other, 1, SideEffect},
    // Other memory for a tensor.
    {"aten::set_", Other, 1, ReplacesMemory | MixesDevices},
    {"aten::resize_", Other, 1, ReplacesMemory},
    {"aten::resize_as_", Other, 1, ReplacesMemory},
    // Sizes that depend on data for some arguments only: masks as indices; lengths given as tensors.
    {"aten::index", Other, 2, SizesKnown | MixesDevices},
    {"aten::one_hot", Other, 2, SizesKnown | Unrecordable},
    {"aten::_ctc_loss", Other, 20, SizesKnown | Unrecordable},
    {"aten::_ctc_loss.Tensor", Other, 20},
    // Indices on the CPU are taken to the device.
    {"aten::index_put", Other, 2, MixesDevices},
    {"aten::index_put_", Other, 2, MixesDevices},
    {"aten::_index_put_impl", Other, 2, MixesDevices},
    {"aten::_index_put_impl_", Other, 2, MixesDevices},
    // Results known from data alone: some versions of libtorch lack the tag on these, and composites have
    // none.
    {"aten::is_nonzero", Other, 1, DataDependent},
    {"aten::item", Other, 1, DataDependent},
    {"aten::_unique", Other, 1, DataDependent},
    {"aten::_unique2", Other, 1, DataDependent},
    {"aten::unique_dim", Other, 1, DataDependent},
    {"aten::unique_consecutive", Other, 1, DataDependent},
    {"aten::unique_dim_consecutive", Other, 1, DataDependent},
    // The host reads values on the way, as was seen on a GPU or is plain from what they return.
    {"aten::linalg_eig", Other, 100, Unrecordable},
    {"aten::_linalg_eigvals", Other, 100, Unrecordable},
    {"aten::_linalg_check_errors", Other, 1, Unrecordable},
    {"aten::histc", Other, 1, Unrecordable},
    {"aten::segment_reduce", Other, 1, Unrecordable},
    {"tandem::number", Other, 1, Unrecordable},
    {"tandem::compute", Other, 1, Unrecordable},
    {"tandem::generator_state", Other, 1, Unrecordable},
};

static constexpr FamilyRow family_table[] = {
    {"aten::linalg_", FickleBackward},
    {"aten::_linalg_", FickleBackward},
    {"aten::cholesky", FickleBackward},
    {"aten::lu_", FickleBackward},
    {"aten::ormqr", FickleBackward},
    {"aten::triangular_solve", FickleBackward},
    {"aten::trace", FickleBackward},
    {"aten::cumprod", FickleBackward},
    {"aten::prod", FickleBackward},
    {"aten::scatter_reduce", FickleBackward},
    {"aten::index_reduce", FickleBackward},
    {"aten::_thnn_fused_", FickleBackward},
    {"aten::empty", Unset},
    {"aten::new_empty", Unset},
    {"aten::as_strided", CountsFromStorage},
};

std::span<const FactRow> special_rows() { return special_table; }
std::span<const FamilyRow> family_rows() { return family_table; }

}  // namespace tandem
