#include "graph/literal.h"

#include <ATen/EmptyTensor.h>

#include "graph/bytes.h"
#include "graph/vocabulary.h"

namespace tandem {
namespace {

c10::IValue constant_of(Cursor& cursor, Operand operand) {
  if (auto* constant = std::get_if<c10::IValue>(&operand)) return std::move(*constant);
  cursor.complain("a tensor stands in a list of constants.");
}

template <class Element>
std::optional<c10::IValue> typed_list(const std::vector<c10::IValue>& items, bool (c10::IValue::*is)() const,
                                      Element (c10::IValue::*to)() const) {
  c10::List<Element> list;
  for (const c10::IValue& item : items) {
    if (!(item.*is)()) return std::nullopt;
    list.push_back((item.*to)());
  }
  return c10::IValue(std::move(list));
}

/// The compact lists where the schema, or where it says nothing the elements, allow one; a list of anything
/// elsewhere.
c10::IValue make_list(const std::vector<c10::IValue>& items, const c10::Type* element) {
  using c10::TypeKind;
  const TypeKind kind = element ? element->kind() : TypeKind::AnyType;
  const bool any = !element;
  std::optional<c10::IValue> list;
  if (any || kind == TypeKind::IntType || kind == TypeKind::SymIntType || kind == TypeKind::ScalarTypeType)
    list = typed_list<int64_t>(items, &c10::IValue::isInt, &c10::IValue::toInt);
  if (!list && (any || kind == TypeKind::FloatType))
    list = typed_list<double>(items, &c10::IValue::isDouble, &c10::IValue::toDouble);
  if (!list && (any || kind == TypeKind::BoolType))
    list = typed_list<bool>(items, &c10::IValue::isBool, &c10::IValue::toBool);
  if (!list && (any || kind == TypeKind::ComplexType))
    list =
        typed_list<c10::complex<double>>(items, &c10::IValue::isComplexDouble, &c10::IValue::toComplexDouble);
  if (list) return *list;
  c10::List<c10::IValue> generic(kind == TypeKind::StringType ? c10::TypePtr(c10::StringType::get())
                                                              : c10::TypePtr(c10::AnyType::get()));
  for (const c10::IValue& item : items) generic.push_back(item);
  return generic;
}

c10::IValue read_number(Cursor& cursor) {
  return std::visit([](auto number) { return c10::IValue(at::Scalar(number)); }, cursor.number());
}

double read_double(Cursor& cursor) {
  auto number = cursor.number();
  if (auto* value = std::get_if<double>(&number)) return *value;
  cursor.complain("a part of a complex number is an integer; write it with a point.");
}

at::Scalar read_complex(Cursor& cursor) {
  cursor.expect("(");
  const double real = read_double(cursor);
  cursor.expect(",");
  const double imaginary = read_double(cursor);
  cursor.expect(")");
  return c10::complex<double>(real, imaginary);
}

at::Tensor wrapped_number(const at::Scalar& scalar) {
  at::Tensor tensor = at::detail::empty_cpu({}, scalar.type());
  void* data = tensor.mutable_data_ptr();
  if (scalar.isBoolean())
    *static_cast<bool*>(data) = scalar.toBool();
  else if (scalar.isComplex())
    *static_cast<c10::complex<double>*>(data) = scalar.toComplexDouble();
  else if (scalar.isFloatingPoint())
    *static_cast<double*>(data) = scalar.toDouble();
  else
    *static_cast<int64_t*>(data) = scalar.toLong();
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::IValue read_constant(Cursor& cursor, const c10::Type* type);

c10::IValue read_wrapped_number(Cursor& cursor) {
  cursor.expect("(");
  const c10::IValue value = read_constant(cursor, nullptr);
  if (!value.isScalar() || value.toScalar().type() == at::kUInt64)
    cursor.complain("a wrapped number holds no number that ATen wraps.");
  cursor.expect(":");
  if (read_dtype(cursor) != value.toScalar().type())
    cursor.complain("a wrapped number has another dtype than its value.");
  cursor.expect(")");
  return wrapped_number(value.toScalar());
}

c10::IValue read_word(Cursor& cursor, const c10::Type* type) {
  const std::string_view next = cursor.peek_word();
  if (auto value = enumerator_named(type, next)) {
    cursor.accept_word(next);
    return *value;
  }
  if (cursor.accept_word("none")) return {};
  if (cursor.accept_word("true")) return true;
  if (cursor.accept_word("false")) return false;
  if (cursor.accept_word("complex")) return read_complex(cursor);
  if (cursor.accept_word("number")) return read_wrapped_number(cursor);
  if (cursor.accept_word("device")) {
    cursor.expect("(");
    const c10::Device device = read_device(cursor);
    cursor.expect(")");
    return device;
  }
  if (next == "generator")
    cursor.complain(
        "a generator cannot be read back from text; trace with the default generator (none) instead.");
  cursor.fail(type ? "a value of type " + type->str() : "a value");
}

c10::IValue read_constant(Cursor& cursor, const c10::Type* type) {
  if (cursor.sees("\"")) return cursor.quoted_string();
  return cursor.sees_number() ? read_number(cursor) : read_word(cursor, type);
}

Operand read(Cursor& cursor, const c10::Type* type, const std::function<Value(Cursor&)>& read_value,
             int depth);

Operand read_list(Cursor& cursor, const c10::Type* type, const std::function<Value(Cursor&)>& read_value,
                  int depth) {
  if (depth > deepest_list)
    cursor.complain("lists are nested more than " + std::to_string(deepest_list) + " deep.");
  const c10::Type* element = element_type(type);
  std::vector<Operand> items;
  bool tensors = false;
  if (!cursor.accept("]")) {
    do {
      items.push_back(read(cursor, element, read_value, depth + 1));
      tensors |= std::holds_alternative<Value>(items.back());
    } while (cursor.accept(","));
    cursor.expect("]");
  }
  if (tensors || is_tensor_list_type(type)) {
    std::vector<Value> values;
    for (Operand& item : items) {
      settle(item, c10::TensorType::get().get());
      if (!std::holds_alternative<Value>(item)) cursor.complain("a constant stands in a list of tensors.");
      values.push_back(std::get<Value>(item));
    }
    return values;
  }
  std::vector<c10::IValue> constants;
  for (Operand& item : items) constants.push_back(constant_of(cursor, std::move(item)));
  return make_list(constants, element);
}

Operand read(Cursor& cursor, const c10::Type* type, const std::function<Value(Cursor&)>& read_value,
             int depth) {
  if (cursor.sees("%")) return read_value(cursor);
  if (cursor.accept("[")) return read_list(cursor, type, read_value, depth);
  return read_constant(cursor, type);
}

}  // namespace

Operand read_operand(Cursor& cursor, const c10::Type* type, const std::function<Value(Cursor&)>& read_value) {
  Operand operand = read(cursor, type, read_value, 0);
  settle(operand, type);
  return operand;
}

void settle(Operand& operand, const c10::Type* type) {
  auto* constant = std::get_if<c10::IValue>(&operand);
  if (!constant) return;
  if (constant->isNone() && is_tensor_type(type))
    operand = Value{};
  else if (constant->isList() && constant->toListRef().empty() && is_tensor_list_type(type))
    operand = std::vector<Value>{};
}

c10::Device read_device(Cursor& cursor) {
  const std::string word(cursor.peek_word());
  try {
    const c10::Device device(word);
    cursor.accept_word(word);
    return device;
  } catch (const std::exception&) {
    cursor.fail("a device");
  }
}

at::ScalarType read_dtype(Cursor& cursor) {
  const std::string_view word = cursor.peek_word();
  auto dtype = dtype_named(word);
  if (!dtype) cursor.fail("a dtype");
  cursor.accept_word(word);
  return *dtype;
}

}  // namespace tandem
