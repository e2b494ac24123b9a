// A graph as canonical bytes, and their SHA-256. Values and storages are numbered by first appearance, so
// that ids nothing uses leave no trace.
#include <tandem/error.h>
#include <tandem/graph.h>

#include <c10/util/flat_hash_map.h>

#include <bit>

#include "base/sha256.h"
#include "graph/bytes.h"
#include "graph/vocabulary.h"
#include "graph/wire.h"
#include "ops/facts.h"

namespace tandem {
namespace {

class Encoder {
 public:
  explicit Encoder(const Graph& graph) : graph_(graph), numbers_(graph.value_count(), -1) {
    writer_.reserve(graph.nodes().size() * bytes_of_a_node);
  }

  std::string encode() {
    text("tandem graph 4");
    list(graph_.inputs(), [&](Value v) { value(v); });
    list(graph_.constants(), [&](const auto& constant) {
      value(constant.first);
      tensor(constant.second);
    });
    list(graph_.nodes(), [&](const Node& n) { node(n); });
    list(graph_.outputs(), [&](Value v) { value(v); });
    return writer_.take();
  }

 private:
  /// What the next bytes mean; part of the hash, so a number never moves to another meaning.
  enum class Tag : uint8_t {
    None,
    Value,
    List,
    Int,
    UInt,
    Double,
    Complex,
    Bool,
    String,
    Device,
    Generator,
    Tensor,
    ConstantList
  };

  void integer(int64_t number) { writer_.integer(number); }
  void byte(auto small) { writer_.byte(uint8_t(small)); }
  void tag(Tag tag) { byte(tag); }
  void text(std::string_view string) { writer_.text(string); }
  void list(const auto& items, auto&& encode_item) { writer_.list(items, encode_item); }

  void value(Value value) {
    if (!value) return tag(Tag::None);
    tag(Tag::Value);
    int32_t& number = numbers_.at(size_t(value.id));
    const bool first = number < 0;
    if (first) number = next_value_++;
    integer(number);
    if (first) meta(graph_.meta(value));
  }

  void meta(const TensorMeta& meta) {
    byte(meta.dtype);
    if (meta.device != device_ || device_text_.empty()) {
      device_ = meta.device;
      device_text_ = device_.str();
    }
    text(device_text_);
    list(meta.sizes, [&](int64_t i) { integer(i); });
    list(meta.strides, [&](int64_t i) { integer(i); });
    integer(meta.offset);
    integer(storage_number(meta.storage));
    byte(meta.requires_grad | meta.conj << 1 | meta.neg << 2);
  }

  int64_t storage_number(int32_t storage) {
    if (storage < 0) return -1;
    return storages_.emplace(storage, int64_t(storages_.size())).first->second;
  }

  void tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return tag(Tag::None);
    tag(Tag::Tensor);
    byte(tensor.scalar_type());
    text(tensor.device().str());
    list(tensor.sizes(), [&](int64_t i) { integer(i); });
    list(tensor.strides(), [&](int64_t i) { integer(i); });
    byte(tensor.unsafeGetTensorImpl()->is_wrapped_number() | tensor.is_conj() << 1 | tensor.is_neg() << 2);
    text(element_bytes(tensor));
  }

  void scalar(const at::Scalar& scalar) {
    if (scalar.isBoolean()) {
      tag(Tag::Bool);
      byte(scalar.toBool());
    } else if (scalar.isComplex()) {
      tag(Tag::Complex);
      integer(std::bit_cast<int64_t>(scalar.toComplexDouble().real()));
      integer(std::bit_cast<int64_t>(scalar.toComplexDouble().imag()));
    } else if (scalar.isFloatingPoint()) {
      tag(Tag::Double);
      integer(std::bit_cast<int64_t>(scalar.toDouble()));
    } else if (scalar.type() == at::kUInt64) {
      tag(Tag::UInt);
      integer(int64_t(scalar.toUInt64()));
    } else {
      tag(Tag::Int);
      integer(scalar.toLong());
    }
  }

  void constant(const c10::IValue& constant) {
    if (constant.isNone()) return tag(Tag::None);
    if (constant.isTensor()) return tensor(constant.toTensor());
    if (auto number = number_in(constant)) return scalar(*number);
    if (constant.isString()) {
      tag(Tag::String);
      text(constant.toStringRef());
    } else if (constant.isDevice()) {
      tag(Tag::Device);
      text(constant.toDevice().str());
    } else if (constant.isGenerator()) {
      if (!constant.toGenerator().defined()) return tag(Tag::None);
      tag(Tag::Generator);  // its state is read at run time; only where it lives is known here
      text(constant.toGenerator().device().str());
    } else if (constant.isList()) {
      tag(Tag::ConstantList);
      list(constant.toListRef(), [&](const c10::IValue& item) { this->constant(item); });
    } else {
      throw Error("A graph holds a constant of type " + constant.tagKind() +
                  ", which has no stable hash; pass it in another way than as an operator's argument.");
    }
  }

  void operand(const Operand& operand) {
    if (auto* one = std::get_if<Value>(&operand)) return value(*one);
    if (auto* many = std::get_if<std::vector<Value>>(&operand)) {
      tag(Tag::List);
      return list(*many, [&](Value v) { value(v); });
    }
    constant(std::get<c10::IValue>(operand));
  }

  /// By number; the first time its name follows.
  void operator_of(const Node& node) {
    const auto [known, first] = operators_.emplace(&node.op.schema(), int64_t(operators_.size()));
    integer(known->second);
    if (!first) return;
    text(node.op.operator_name().name);
    text(node.op.operator_name().overload_name);
  }

  void node(const Node& node) {
    operator_of(node);
    byte(node.phase);
    list(node.arguments, [&](const Operand& o) { operand(o); });
    list(node.results, [&](const Operand& o) { operand(o); });
    list(node.writes, [&](const auto& write) {
      value(write.first);
      value(write.second);
    });
    value(node.state);
    value(node.next_state);
  }

  static constexpr size_t bytes_of_a_node = 128;  ///< a guess on the high side

  const Graph& graph_;
  ByteWriter writer_;
  std::vector<int32_t> numbers_;
  int32_t next_value_ = 0;
  c10::Device device_ = c10::kCPU;  ///< of the meta before, which the next one mostly shares
  std::string device_text_;
  ska::flat_hash_map<const c10::FunctionSchema*, int64_t> operators_;  ///< each has one of its own
  ska::flat_hash_map<int32_t, int64_t> storages_;
};

}  // namespace

std::string Graph::hash() const { return sha256(Encoder(*this).encode()); }

}  // namespace tandem
