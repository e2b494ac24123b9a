// What a single meta or a single operand must satisfy, whatever graph it is in.
#include "graph/boxing.h"
#include "graph/vocabulary.h"

namespace tandem {
namespace {

/// The bytes that a geometry reaches, or none where they do not fit into an int64.
std::optional<int64_t> reach(const TensorMeta& meta) {
  __int128 last = meta.offset;
  __int128 numel = 1;
  constexpr __int128 limit = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    if (meta.sizes[i] == 0) return 0;
    last += __int128(meta.sizes[i] - 1) * meta.strides[i];
    numel *= meta.sizes[i];
    if (last > limit || numel > limit) return std::nullopt;
  }
  last = (last + 1) * __int128(c10::elementSize(meta.dtype));
  if (last > limit || numel * __int128(c10::elementSize(meta.dtype)) > limit) return std::nullopt;
  return int64_t(last);
}

bool fits(const c10::IValue& value, const c10::Type& type);

bool each_fits(const c10::IValue& list, const c10::Type& element) {
  if (!list.isList()) return false;
  for (const c10::IValue& value : list.toListRef())
    if (!fits(value, element)) return false;
  return true;
}

bool fits(const c10::IValue& value, const c10::Type& type) {
  using c10::TypeKind;
  switch (type.kind()) {
    case TypeKind::OptionalType:
      return value.isNone() || fits(value, *without_optional(&type));
    case TypeKind::TensorType:
      return value.isNone() ||
             (value.isTensor() &&
              (!value.toTensor().defined() || value.toTensor().unsafeGetTensorImpl()->is_wrapped_number()));
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
      return value.isInt();
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      return value.isDouble() || value.isInt();
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return value.isBool();
    case TypeKind::ComplexType:
      return value.isComplexDouble() || value.isDouble() || value.isInt();
    case TypeKind::NumberType:
      return number_in(value).has_value();
    case TypeKind::StringType:
      return value.isString();
    case TypeKind::DeviceObjType:
      return value.isDevice();
    case TypeKind::GeneratorType:
      return value.isGenerator();
    case TypeKind::ListType:
      return each_fits(value, *element_type(&type));
    default:
      return true;
  }
}

}  // namespace

std::string complaint(const TensorMeta& meta) {
  if (meta.dtype < at::kByte || meta.dtype >= at::ScalarType::Undefined) return "has no dtype";
  if (meta.sizes.size() != meta.strides.size())
    return "has " + std::to_string(meta.sizes.size()) + " sizes and " + std::to_string(meta.strides.size()) +
           " strides";
  for (int64_t size : meta.sizes)
    if (size < 0) return "has the negative size " + std::to_string(size);
  for (int64_t stride : meta.strides)
    if (stride < 0) return "has the negative stride " + std::to_string(stride);
  if (meta.offset < 0) return "begins at the negative offset " + std::to_string(meta.offset);
  if (!reach(meta)) return "is larger than any memory";
  return {};
}

std::string mismatch(const Operand& operand, const c10::Type& type) {
  if (std::holds_alternative<Value>(operand)) {
    if (std::get<Value>(operand) ? is_tensor_type(&type)
                                 : is_tensor_type(&type) || type.kind() == c10::TypeKind::OptionalType)
      return {};
    if (std::get<Value>(operand) && is_number(type)) return {};
    return "is a tensor where the schema has " + type.str();
  }
  if (std::holds_alternative<std::vector<Value>>(operand))
    return is_tensor_list_type(&type) || is_list_of_numbers(type)
               ? ""
               : "is a list of tensors where the schema has " + type.str();
  const auto& constant = std::get<c10::IValue>(operand);
  return fits(constant, type)
             ? ""
             : "is a constant of type " + constant.tagKind() + " where the schema has " + type.str();
}

}  // namespace tandem
