#include "graph/constant_bytes.h"

#include <tandem/error.h>

#include <algorithm>

#include "graph/bytes.h"
#include "graph/vocabulary.h"

namespace tandem {
namespace {

constexpr size_t most_dimensions = 64;  ///< libtorch's own limit

enum MetaFlag : uint8_t { RequiresGrad = 1, Conj = 2, Neg = 4, Dense = 8, AllMetaFlags = 15 };

void write_device(ByteWriter& writer, c10::Device device) {
  writer.byte(uint8_t(device.type()));
  writer.byte(uint8_t(device.index() + 1));
}

c10::Device read_device(ByteReader& reader) {
  const auto type =
      c10::DeviceType(reader.byte_below(unsigned(c10::COMPILE_TIME_MAX_DEVICE_TYPES), "kind of device"));
  const int index = int(reader.byte_below(128, "device")) - 1;
  if (!c10::isValidDeviceType(type) || (type == c10::kCPU && index > 0))
    reader.refuse("it names a device that no machine has");
  return {type, c10::DeviceIndex(index)};
}

TensorMeta meta_of(const at::Tensor& tensor) {
  TensorMeta meta;
  meta.dtype = tensor.scalar_type();
  meta.device = tensor.device();
  meta.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  meta.strides.assign(tensor.strides().begin(), tensor.strides().end());
  meta.conj = tensor.is_conj();
  meta.neg = tensor.is_neg();
  return meta;
}

/// Why elements of these many bytes cannot be kept with this geometry; empty when they can. Gaps would cost
/// memory that no byte stands for.
std::string complaint_about_data(const TensorMeta& meta, size_t bytes) {
  if (std::string wrong = complaint(meta); !wrong.empty()) return wrong;
  if (meta.device.is_meta() || c10::isQIntType(meta.dtype))
    return "is on the meta device or of a quantised type";
  if (meta.offset != 0 || meta.storage_bytes() > int64_t(bytes))
    return "has gaps between its elements; make it contiguous";
  if (meta.conj && !c10::isComplexType(meta.dtype)) return "is a conjugate of real numbers";
  return {};
}

/// What a constant is, as its first byte says.
enum class Tag : uint8_t {
  None,
  Int,
  UInt,
  Double,
  Complex,
  False,
  True,
  Text,
  Device,
  Tensor,
  NoTensor,
  List,
  Count
};

/// A list holds elements of one type, which operators ask it for.
struct ListKind {
  c10::TypePtr element;
  bool (c10::IValue::*holds)() const;  ///< null: anything
};

const std::vector<ListKind>& list_kinds() {
  static const std::vector<ListKind> kinds = {
      {c10::IntType::get(), &c10::IValue::isInt},
      {c10::SymIntType::get(), &c10::IValue::isInt},
      {c10::FloatType::get(), &c10::IValue::isDouble},
      {c10::BoolType::get(), &c10::IValue::isBool},
      {c10::ComplexType::get(), &c10::IValue::isComplexDouble},
      {c10::StringType::get(), &c10::IValue::isString},
      {c10::NumberType::get(), &c10::IValue::isScalar},
      {c10::AnyType::get(), nullptr},
  };
  return kinds;
}

void write_list(ByteWriter& writer, const c10::IValue& list) {
  const c10::TypePtr element = list.toList().elementType();
  const auto& kinds = list_kinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                 [&](const ListKind& k) { return k.element->kind() == element->kind(); });
  if (kind == kinds.end())
    throw Error("an argument is a list of " + element->str() + ", which has no stable bytes");
  writer.byte(uint8_t(kind - kinds.begin()));
  writer.list(list.toListRef(), [&](const c10::IValue& item) { write_constant(writer, item); });
}

void write_scalar(ByteWriter& writer, const at::Scalar& scalar) {
  auto tag = [&](Tag tag) { writer.byte(uint8_t(tag)); };
  if (scalar.isBoolean()) return tag(scalar.toBool() ? Tag::True : Tag::False);
  if (scalar.isComplex()) {
    tag(Tag::Complex);
    writer.real(scalar.toComplexDouble().real());
    return writer.real(scalar.toComplexDouble().imag());
  }
  if (scalar.isFloatingPoint()) {
    tag(Tag::Double);
    return writer.real(scalar.toDouble());
  }
  if (scalar.type() == at::kUInt64) {
    tag(Tag::UInt);
    return writer.number(scalar.toUInt64());
  }
  tag(Tag::Int);
  writer.integer(scalar.toLong());
}

c10::IValue read_constant(ByteReader& reader, int depth);

c10::IValue read_list(ByteReader& reader, int depth) {
  if (depth > deepest_list)
    reader.refuse("lists are nested more than " + std::to_string(deepest_list) + " deep");
  const ListKind& kind = list_kinds()[reader.byte_below(unsigned(list_kinds().size()), "kind of list")];
  c10::impl::GenericList list(kind.element);
  const size_t count = reader.count(1);
  list.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    c10::IValue item = read_constant(reader, depth + 1);
    if (kind.holds && !(item.*kind.holds)())
      reader.refuse("a list of " + kind.element->str() + " holds something else");
    list.push_back(std::move(item));
  }
  return list;
}

c10::IValue read_constant(ByteReader& reader, int depth) {
  switch (Tag(reader.byte_below(unsigned(Tag::Count), "kind of constant"))) {
    case Tag::Int:
      return reader.integer();
    case Tag::UInt:
      return at::Scalar(reader.number());
    case Tag::Double:
      return reader.real();
    case Tag::Complex: {
      const double real = reader.real();
      return c10::complex<double>(real, reader.real());
    }
    case Tag::False:
      return false;
    case Tag::True:
      return true;
    case Tag::Text:
      return std::string(reader.text());
    case Tag::Device:
      return read_device(reader);
    case Tag::Tensor:
      return read_tensor(reader);
    case Tag::NoTensor:
      return at::Tensor();
    case Tag::List:
      return read_list(reader, depth);
    default:
      return {};
  }
}

}  // namespace

void write_meta(ByteWriter& writer, const TensorMeta& meta) {
  const bool dense = meta.strides == dense_strides(meta.sizes);
  writer.byte(uint8_t(meta.dtype));
  write_device(writer, meta.device);
  writer.byte(uint8_t(meta.requires_grad * RequiresGrad | meta.conj * Conj | meta.neg * Neg | dense * Dense));
  writer.number(uint64_t(meta.storage) + 1);
  writer.number(uint64_t(meta.offset));
  writer.list(meta.sizes, [&](int64_t size) { writer.number(uint64_t(size)); });
  if (!dense) writer.list(meta.strides, [&](int64_t stride) { writer.number(uint64_t(stride)); });
}

TensorMeta read_meta(ByteReader& reader) {
  auto read_dims = [&] {
    const size_t count = reader.count(1);
    if (count > most_dimensions) reader.refuse("a tensor has " + std::to_string(count) + " dimensions");
    Dims dims(count);
    for (int64_t& dim : dims) dim = int64_t(reader.number());
    return dims;
  };
  TensorMeta meta;
  meta.dtype = at::ScalarType(reader.byte_below(unsigned(at::ScalarType::Undefined), "dtype"));
  meta.device = read_device(reader);
  const uint8_t flags = reader.byte_below(AllMetaFlags + 1, "property of tensors");
  meta.requires_grad = flags & RequiresGrad;
  meta.conj = flags & Conj;
  meta.neg = flags & Neg;
  meta.storage = int32_t(reader.number_below(uint64_t(most_storages) + 1, "storage")) - 1;
  meta.offset = int64_t(reader.number());
  meta.sizes = read_dims();
  meta.strides = flags & Dense ? dense_strides(meta.sizes) : read_dims();
  if (const std::string wrong = complaint(meta); !wrong.empty()) reader.refuse("a tensor " + wrong);
  return meta;
}

void write_tensor(ByteWriter& writer, const at::Tensor& tensor) {
  const TensorMeta meta = meta_of(tensor);
  const std::string bytes = element_bytes(tensor);
  if (const std::string wrong = complaint_about_data(meta, bytes.size()); !wrong.empty())
    throw Error("a constant tensor " + wrong);
  write_meta(writer, meta);
  writer.byte(tensor.unsafeGetTensorImpl()->is_wrapped_number());
  writer.text(bytes);
}

at::Tensor read_tensor(ByteReader& reader) {
  const TensorMeta meta = read_meta(reader);
  const bool wrapped = reader.flag();
  const std::string_view bytes = reader.text();
  if (const std::string wrong = complaint_about_data(meta, bytes.size()); !wrong.empty())
    reader.refuse("a constant tensor " + wrong);
  if (meta.dtype == at::kBool &&
      std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; }))
    reader.refuse("a boolean is neither true nor false");
  if (wrapped && !meta.sizes.empty()) reader.refuse("a wrapped number has dimensions");
  try {
    at::Tensor tensor = tensor_from_bytes(meta, bytes);
    if (wrapped) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  } catch (const c10::Error& error) {
    reader.refuse("a constant tensor cannot be made: " + std::string(error.what_without_backtrace()));
  }
}

void write_constant(ByteWriter& writer, const c10::IValue& constant) {
  auto tag = [&](Tag tag) { writer.byte(uint8_t(tag)); };
  if (constant.isNone()) return tag(Tag::None);
  if (auto number = number_in(constant)) return write_scalar(writer, *number);
  if (constant.isTensor() && !constant.toTensor().defined()) return tag(Tag::NoTensor);
  if (constant.isTensor()) {
    tag(Tag::Tensor);
    write_tensor(writer, constant.toTensor());
  } else if (constant.isString()) {
    tag(Tag::Text);
    writer.text(constant.toStringRef());
  } else if (constant.isDevice()) {
    tag(Tag::Device);
    write_device(writer, constant.toDevice());
  } else if (constant.isList()) {
    tag(Tag::List);
    write_list(writer, constant);
  } else {
    throw Error("an argument of type " + constant.tagKind() + " has no stable bytes");
  }
}

c10::IValue read_constant(ByteReader& reader) { return read_constant(reader, 0); }

}  // namespace tandem
