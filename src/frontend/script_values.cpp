#include "frontend/script_values.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <tandem/error.h>

namespace tandem {
namespace {

using c10::IValue;

/// Writes values of every kind; what is done with tensors and objects depends on what they are written for.
struct ScriptWriter {
  Writer& to;
  bool by_identity;

  void write(const IValue& value);
  void write_address(const IValue& value) {
    const void* address = value.internalToPointer();
    to.write_bytes(&address, sizeof address);
  }
  template <class Label>
  void write_part(const Label& label, const IValue& part) {
    to.part(label, [&] { write(part); });
  }
};

void write_tensor(const IValue& value, ScriptWriter& writer) {
  if (writer.by_identity) {
    const void* address = value.toTensor().unsafeGetTensorImpl();
    writer.to.write_bytes(&address, sizeof address);
  } else {
    writer.to.write_tensor(value.toTensor());
  }
}

void write_list(const IValue& value, ScriptWriter& writer) {
  auto items = value.toListRef();
  writer.to.write_size(items.size());
  for (size_t i = 0; i < items.size(); ++i) writer.write_part(i, items[i]);
}

void write_tuple(const IValue& value, ScriptWriter& writer) {
  const auto& items = value.toTupleRef().elements();
  writer.to.write_size(items.size());
  for (size_t i = 0; i < items.size(); ++i) writer.write_part(i, items[i]);
}

void write_dict(const IValue& value, ScriptWriter& writer) {
  auto dict = value.toGenericDict();
  writer.to.write_size(dict.size());
  for (const auto& item : dict) {
    writer.write(item.key());
    writer.write_part(item.key().isString() ? item.key().toStringRef() : c10::str(item.key()), item.value());
  }
}

void write_enum(const IValue& value, ScriptWriter& writer) {
  auto holder = value.toEnumHolder();
  writer.to.write(holder->qualifiedClassName());
  writer.to.write(holder->name());
}

void write_other(const IValue& value, ScriptWriter& writer) {
  if (!writer.by_identity)
    throw UnsupportedError((writer.to.names ? writer.to.path : std::string("a value")) +
                           " is a TorchScript value of type " + value.type()->repr_str() +
                           ", which cannot go in or out of a compiled script; use tensors, numbers, strings, "
                           "lists, tuples and dicts.");
  if (value.isPtrType()) writer.write_address(value);
}

struct KindRow {
  char tag;
  bool (*is)(const IValue&);
  void (*write)(const IValue&, ScriptWriter&);
};

// The most frequent first; the last one takes the rest.
constexpr KindRow kinds[] = {
    {'T', [](const IValue& v) { return v.isTensor(); }, write_tensor},
    {'N', [](const IValue& v) { return v.isNone(); }, [](const IValue&, ScriptWriter&) {}},
    {'b', [](const IValue& v) { return v.isBool(); },
     [](const IValue& v, ScriptWriter& w) { w.to.write(v.toBool()); }},
    {'i', [](const IValue& v) { return v.isInt(); },
     [](const IValue& v, ScriptWriter& w) { w.to.write(v.toInt()); }},
    {'d', [](const IValue& v) { return v.isDouble(); },
     [](const IValue& v, ScriptWriter& w) { w.to.write(v.toDouble()); }},
    {'l', [](const IValue& v) { return v.isList(); }, write_list},
    {'t', [](const IValue& v) { return v.isTuple(); }, write_tuple},
    {'m', [](const IValue& v) { return v.isGenericDict(); }, write_dict},
    {'s', [](const IValue& v) { return v.isString(); },
     [](const IValue& v, ScriptWriter& w) { w.to.write(v.toStringRef()); }},
    {'c', [](const IValue& v) { return v.isComplexDouble(); },
     [](const IValue& v, ScriptWriter& w) { w.to.write(v.toComplexDouble()); }},
    {'D', [](const IValue& v) { return v.isDevice(); },
     [](const IValue& v, ScriptWriter& w) { w.to.write(v.toDevice()); }},
    {'e', [](const IValue& v) { return v.isEnum(); }, write_enum},
    {'o', [](const IValue&) { return true; }, write_other},
};

void ScriptWriter::write(const IValue& value) {
  auto row = std::find_if(std::begin(kinds), std::end(kinds),
                          [&](const KindRow& candidate) { return candidate.is(value); });
  to.rest.push_back(row->tag);
  row->write(value, *this);
}

std::vector<IValue> build_items(const ScriptLayout& layout, const at::Tensor*& next_tensor) {
  std::vector<IValue> items;
  items.reserve(layout.items.size());
  for (const ScriptLayout& item : layout.items) items.push_back(build_script_value(item, next_tensor));
  return items;
}

IValue build_tuple(const c10::TypePtr& type, std::vector<IValue> items) {
  auto tuple = type->expect<c10::TupleType>();
  return tuple->schema() ? c10::ivalue::Tuple::createNamed(std::move(items), tuple)
                         : c10::ivalue::Tuple::create(std::move(items));
}

IValue build_dict(const ScriptLayout& layout, std::vector<IValue> items) {
  auto type = layout.type->expect<c10::DictType>();
  c10::impl::GenericDict dict(type->getKeyType(), type->getValueType());
  for (size_t i = 0; i < items.size(); ++i) dict.insert(layout.keys[i], std::move(items[i]));
  return dict;
}

IValue build_list(const ScriptLayout& layout, std::vector<IValue> items) {
  c10::impl::GenericList list(layout.type);
  list.reserve(items.size());
  for (IValue& item : items) list.push_back(std::move(item));
  return list;
}

}  // namespace

void write_script_value(const IValue& value, Writer& to) { ScriptWriter{to, false}.write(value); }
void write_script_state(const IValue& value, Writer& to) { ScriptWriter{to, true}.write(value); }

ScriptLayout describe_script_value(const IValue& value) {
  using Kind = ScriptLayout::Kind;
  ScriptLayout layout;
  if (value.isTensor()) {
    layout.kind = Kind::Tensor;
  } else if (value.isList()) {
    layout.kind = Kind::List;
    layout.type = value.toList().elementType();
    for (const IValue& item : value.toListRef()) layout.items.push_back(describe_script_value(item));
  } else if (value.isTuple()) {
    layout.kind = Kind::Tuple;
    layout.type = value.toTupleRef().type();
    for (const IValue& item : value.toTupleRef().elements())
      layout.items.push_back(describe_script_value(item));
  } else if (value.isGenericDict()) {
    auto dict = value.toGenericDict();
    layout.kind = Kind::Dict;
    layout.type = c10::DictType::create(dict.keyType(), dict.valueType());
    for (const auto& item : dict) {
      layout.keys.push_back(item.key());
      layout.items.push_back(describe_script_value(item.value()));
    }
  } else {
    layout.constant = value;
  }
  return layout;
}

IValue build_script_value(const ScriptLayout& layout, const at::Tensor*& next_tensor) {
  switch (layout.kind) {
    case ScriptLayout::Kind::Tensor:
      return *next_tensor++;
    case ScriptLayout::Kind::Constant:
      return layout.constant;
    case ScriptLayout::Kind::List:
      return build_list(layout, build_items(layout, next_tensor));
    case ScriptLayout::Kind::Tuple:
      return build_tuple(layout.type, build_items(layout, next_tensor));
    case ScriptLayout::Kind::Dict:
      return build_dict(layout, build_items(layout, next_tensor));
  }
  return {};
}

}  // namespace tandem
