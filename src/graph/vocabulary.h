/// The words that the printed form of a graph is made of, each readable both ways.
#pragma once

#include <tandem/graph.h>

#include <optional>

namespace tandem {

/// `f32`, `i64`, `bool`, …; libtorch's own name for the rarer types.
std::string dtype_word(at::ScalarType dtype);
std::optional<at::ScalarType> dtype_named(std::string_view word);

/// The word for an integer that a schema declares as a dtype, layout or memory format (`type` may be null, or
/// an optional of one); none for other types.
std::optional<std::string> enumerator_word(const c10::Type* type, int64_t value);
std::optional<int64_t> enumerator_named(const c10::Type* type, std::string_view word);

/// The type inside an optional, or the type itself.
const c10::Type* without_optional(const c10::Type* type);
/// The element type of a list, or of an optional list; null for everything else.
const c10::Type* element_type(const c10::Type* type);
/// Tensor or Tensor?.
bool is_tensor_type(const c10::Type* type);
/// A list of tensors or of optional tensors, or an optional of such a list.
bool is_tensor_list_type(const c10::Type* type);

/// Lists of constants nest no deeper, in text and in bytes.
constexpr int deepest_list = 8;
/// Storages that are read have numbers below, in text and in bytes, so that there is always a fresh one.
constexpr int64_t most_storages = (1 << 30) - 1;

/// The number that a constant is; none for symbols and for everything else.
std::optional<at::Scalar> number_in(const c10::IValue& constant);

/// `true`, `3`, `3u`, `3.0`, `complex(1.0, 2.0)`.
std::string scalar_word(const at::Scalar& scalar);
/// `[2, 3]`.
std::string dims_word(at::IntArrayRef dims);
/// The same and a number's digits at the end of a text, for texts that are made at every call.
void append_dims(std::string& to, at::IntArrayRef dims);
void append_number(std::string& to, int64_t number);
/// Shortest digits that read back to the same bits; always distinguishable from an integer.
std::string double_word(double value);
/// In double quotes; quotes, backslashes and bytes that do not print are escaped.
std::string in_quotes(std::string_view text);
/// Letters, digits, `_` and `.`, beginning with a letter or `_`: a name that needs no quotes.
bool is_plain_name(std::string_view text);

/// The strides that a dense tensor of these sizes has unless told otherwise; wraps on sizes that no memory
/// holds.
Dims dense_strides(at::IntArrayRef sizes);
/// What is wrong with a meta, as the end of a sentence; empty when nothing is.
std::string complaint(const TensorMeta& meta);

/// Why an argument of this operand cannot be handed to a parameter of `type`, as the end of a sentence; empty
/// when it can.
std::string mismatch(const Operand& operand, const c10::Type& type);

}  // namespace tandem
