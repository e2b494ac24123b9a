#include "graph/vocabulary.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "graph/bytes.h"

namespace tandem {
namespace {

constexpr std::pair<at::ScalarType, const char*> dtype_words[] = {
    {at::kFloat, "f32"},
    {at::kDouble, "f64"},
    {at::kHalf, "f16"},
    {at::kBFloat16, "bf16"},
    {at::kLong, "i64"},
    {at::kInt, "i32"},
    {at::kShort, "i16"},
    {at::kChar, "i8"},
    {at::kByte, "u8"},
    {at::kUInt16, "u16"},
    {at::kUInt32, "u32"},
    {at::kUInt64, "u64"},
    {at::kBool, "bool"},
    {at::kComplexHalf, "c32"},
    {at::kComplexFloat, "c64"},
    {at::kComplexDouble, "c128"},
    {at::kFloat8_e5m2, "f8_e5m2"},
    {at::kFloat8_e4m3fn, "f8_e4m3fn"},
};

constexpr std::pair<at::Layout, const char*> layout_words[] = {
    {at::Layout::Strided, "strided"},      {at::Layout::Sparse, "sparse"},
    {at::Layout::SparseCsr, "sparse_csr"}, {at::Layout::Mkldnn, "mkldnn"},
    {at::Layout::SparseCsc, "sparse_csc"}, {at::Layout::SparseBsr, "sparse_bsr"},
    {at::Layout::SparseBsc, "sparse_bsc"}, {at::Layout::Jagged, "jagged"},
};

constexpr std::pair<at::MemoryFormat, const char*> memory_format_words[] = {
    {at::MemoryFormat::Contiguous, "contiguous"},
    {at::MemoryFormat::Preserve, "preserve"},
    {at::MemoryFormat::ChannelsLast, "channels_last"},
    {at::MemoryFormat::ChannelsLast3d, "channels_last_3d"},
};

std::optional<std::string> word_for(const auto& table, int64_t value) {
  for (const auto& [entry, word] : table)
    if (int64_t(entry) == value) return word;
  return std::nullopt;
}

std::optional<int64_t> value_of(const auto& table, std::string_view word) {
  for (const auto& [entry, name] : table)
    if (name == word) return int64_t(entry);
  return std::nullopt;
}

bool is_dtype(int64_t value) { return value >= 0 && value < int64_t(at::ScalarType::NumOptions); }

}  // namespace

std::string dtype_word(at::ScalarType dtype) {
  if (auto word = word_for(dtype_words, int64_t(dtype))) return *word;
  return c10::toString(dtype);
}

std::optional<at::ScalarType> dtype_named(std::string_view word) {
  if (auto value = value_of(dtype_words, word)) return at::ScalarType(*value);
  for (int i = 0; i < int(at::ScalarType::NumOptions); ++i)
    if (auto dtype = at::ScalarType(i); dtype != at::ScalarType::Undefined && word == c10::toString(dtype))
      return dtype;
  return std::nullopt;
}

std::optional<std::string> enumerator_word(const c10::Type* type, int64_t value) {
  type = without_optional(type);
  if (!type) return std::nullopt;
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType:
      return is_dtype(value) ? std::optional(dtype_word(at::ScalarType(value))) : std::nullopt;
    case c10::TypeKind::LayoutType:
      return word_for(layout_words, value);
    case c10::TypeKind::MemoryFormatType:
      return word_for(memory_format_words, value);
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> enumerator_named(const c10::Type* type, std::string_view word) {
  type = without_optional(type);
  if (!type) return std::nullopt;
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType:
      if (auto dtype = dtype_named(word)) return int64_t(*dtype);
      return std::nullopt;
    case c10::TypeKind::LayoutType:
      return value_of(layout_words, word);
    case c10::TypeKind::MemoryFormatType:
      return value_of(memory_format_words, word);
    default:
      return std::nullopt;
  }
}

const c10::Type* without_optional(const c10::Type* type) {
  if (!type || type->kind() != c10::TypeKind::OptionalType) return type;
  return type->castRaw<c10::OptionalType>()->getElementType().get();
}

const c10::Type* element_type(const c10::Type* type) {
  type = without_optional(type);
  if (!type || type->kind() != c10::TypeKind::ListType) return nullptr;
  return type->castRaw<c10::ListType>()->getElementType().get();
}

bool is_tensor_type(const c10::Type* type) {
  type = without_optional(type);
  return type && type->kind() == c10::TypeKind::TensorType;
}

bool is_tensor_list_type(const c10::Type* type) { return is_tensor_type(element_type(type)); }

std::optional<at::Scalar> number_in(const c10::IValue& constant) {
  if (constant.isInt() || constant.isDouble() || constant.isBool() || constant.isComplexDouble())
    return constant.toScalar();
  // isScalar() forgets those beyond the signed range
  if (constant.tagKind() == "UInt") return constant.toScalar();
  return std::nullopt;
}

std::string double_word(double value) {
  if (std::isnan(value)) {
    const auto bits = std::bit_cast<uint64_t>(value);
    if (bits == std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN())) return "nan";
    char digits[16];
    return "nan(0x" + std::string(digits, std::to_chars(digits, digits + sizeof digits, bits, 16).ptr) + ")";
  }
  char digits[32];
  std::string word(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return word.find_first_of(".en") == std::string::npos ? word + ".0" : word;
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      (result += '\\') += char(c);
    else if (c == '\n')
      result += "\\n";
    else if (c < 0x20 || c >= 0x7f)
      result += "\\x" + to_hex({reinterpret_cast<char*>(&c), 1});
    else
      result += char(c);
  }
  return result += '"';
}

bool is_plain_name(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

std::string scalar_word(const at::Scalar& scalar) {
  if (scalar.isBoolean()) return scalar.toBool() ? "true" : "false";
  if (scalar.isComplex()) {
    const auto number = scalar.toComplexDouble();
    return "complex(" + double_word(number.real()) + ", " + double_word(number.imag()) + ")";
  }
  if (scalar.isFloatingPoint()) return double_word(scalar.toDouble());
  if (scalar.type() == at::kUInt64) return std::to_string(scalar.toUInt64()) + 'u';
  return std::to_string(scalar.toLong());
}

std::string dims_word(at::IntArrayRef dims) {
  std::string text;
  append_dims(text, dims);
  return text;
}

void append_dims(std::string& to, at::IntArrayRef dims) {
  to += '[';
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) to += ", ";
    append_number(to, dims[i]);
  }
  to += ']';
}

void append_number(std::string& to, int64_t number) {
  if (number >= 0 && number < 10) return to.push_back(char('0' + number));
  char digits[20];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

Dims dense_strides(at::IntArrayRef sizes) {
  Dims strides(sizes.size());
  uint64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = int64_t(stride);
    stride *= uint64_t(std::max<int64_t>(sizes[i], 1));
  }
  return strides;
}

}  // namespace tandem
