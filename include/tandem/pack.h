/// How arguments and results become a flat list of tensors and back: tensors are listed, everything else joins the signature.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <complex>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace torch {
template <typename Key, typename Value>
class OrderedDict;
}

namespace tandem {

/// How values of type T are written and read back. Specialise it for a type of your own with
///   static void write(const T&, Writer&);   // every part, through Writer::write
///   static T read(Reader&);                 // the same parts in the same order, through Reader::read
template <class T>
struct Pack;

/// Takes a value apart.
class Writer {
 public:
  std::vector<at::Tensor> tensors;
  std::string rest;                         ///< numbers, strings, lengths, which optionals are set: all that is no tensor
  std::vector<std::string>* names = nullptr;  ///< where to put the name of each tensor, when somebody asks
  std::string path;                         ///< the name of what is being written, kept only for `names`

  template <class T>
  void write(const T& value) {
    Pack<T>::write(value, *this);
  }
  /// Writes a part of a value; `label` is its position or key.
  template <class T, class Label>
  void write_part(const Label& label, const T& value) {
    part(label, [&] { write(value); });
  }
  /// The same for whoever writes the part himself.
  template <class Label, class Write>
  void part(const Label& label, const Write& write_it) {
    if (!names) return write_it();
    size_t length = path.size();
    append(label);
    write_it();
    path.resize(length);
  }
  void write_tensor(const at::Tensor& tensor) {
    tensors.push_back(tensor);
    if (names) names->push_back(path);
  }
  void write_bytes(const void* bytes, size_t count) { rest.append(static_cast<const char*>(bytes), count); }
  void write_size(size_t size) { write_bytes(&size, sizeof size); }

 private:
  void append(size_t position) { path += "[" + std::to_string(position) + "]"; }
  void append(const std::string& key) { path += "." + key; }
  template <class Key>
  void append(const Key&) { path += "[key]"; }
};

/// Puts values together again. What `read` returns may refer to memory that the reader owns.
class Reader {
 public:
  Reader(const std::vector<at::Tensor>& tensors, std::string_view rest) : tensors_(tensors), rest_(rest) {}

  template <class T>
  T read() {
    return Pack<T>::read(*this);
  }
  const at::Tensor& read_tensor() { return tensors_[next_++]; }
  void read_bytes(void* bytes, size_t count) {
    std::memcpy(bytes, rest_.data(), count);
    rest_.remove_prefix(count);
  }
  size_t read_size() {
    size_t size = 0;
    read_bytes(&size, sizeof size);
    return size;
  }
  template <class T>
  const T& keep(T value) {
    auto kept = std::make_shared<T>(std::move(value));
    kept_.push_back(kept);
    return *kept;
  }

 private:
  const std::vector<at::Tensor>& tensors_;
  size_t next_ = 0;
  std::string_view rest_;
  std::vector<std::shared_ptr<const void>> kept_;
};

namespace detail {

template <class>
inline constexpr bool always_false = false;

/// Types whose bytes are their value.
template <class T>
concept PlainValue = (std::is_arithmetic_v<T> && !std::is_same_v<T, long double>) || std::is_enum_v<T> || std::is_same_v<T, c10::Device> ||
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>> || std::is_same_v<T, c10::complex<float>> ||
    std::is_same_v<T, c10::complex<double>>;

/// Types whose value is the type itself: the alternatives of libtorch's option variants, std::monostate, plain functors.
template <class T>
concept Tag = std::is_empty_v<T> && std::is_default_constructible_v<T>;

template <class T>
concept MapLike = requires(T map, typename T::key_type key, typename T::mapped_type value) { map.emplace(std::move(key), std::move(value)); };

}  // namespace detail

template <class T>
struct Pack {
  static_assert(detail::always_false<T>,
                "tandem::compile: this argument or result type cannot be taken apart; use tensors, numbers, strings, enums and standard containers of them, or specialise tandem::Pack for it.");
};

template <>
struct Pack<at::Tensor> {
  static void write(const at::Tensor& value, Writer& to) { to.write_tensor(value); }
  static at::Tensor read(Reader& from) { return from.read_tensor(); }
};

template <detail::PlainValue T>
struct Pack<T> {
  static void write(const T& value, Writer& to) { to.write_bytes(&value, sizeof value); }
  static T read(Reader& from) {
    alignas(T) std::byte bytes[sizeof(T)];
    from.read_bytes(bytes, sizeof bytes);
    T value = *reinterpret_cast<T*>(bytes);
    return value;
  }
};

template <detail::Tag T>
struct Pack<T> {
  static void write(const T&, Writer&) {}
  static T read(Reader&) { return {}; }
};

template <>
struct Pack<std::nullopt_t> {
  static void write(std::nullopt_t, Writer&) {}
  static std::nullopt_t read(Reader&) { return std::nullopt; }
};

template <>
struct Pack<std::string> {
  static void write(const std::string& value, Writer& to) {
    to.write_size(value.size());
    to.write_bytes(value.data(), value.size());
  }
  static std::string read(Reader& from) {
    std::string value(from.read_size(), '\0');
    from.read_bytes(value.data(), value.size());
    return value;
  }
};

template <>
struct Pack<std::string_view> {
  static void write(std::string_view value, Writer& to) { to.write(std::string(value)); }
  static std::string_view read(Reader& from) { return from.keep(from.read<std::string>()); }
};

template <>
struct Pack<const char*> {
  static void write(const char* value, Writer& to) { to.write(std::string(value)); }
  static const char* read(Reader& from) { return from.keep(from.read<std::string>()).c_str(); }
};

template <>
struct Pack<c10::Scalar> {
  static void write(const c10::Scalar& value, Writer& to) {
    to.write(value.type());
    if (value.isComplex()) to.write(value.toComplexDouble());
    else if (value.isFloatingPoint()) to.write(value.toDouble());
    else to.write(value.toLong());
  }
  static c10::Scalar read(Reader& from) {
    auto type = from.read<c10::ScalarType>();
    if (c10::isComplexType(type)) return from.read<c10::complex<double>>();
    if (c10::isFloatingType(type)) return from.read<double>();
    int64_t integer = from.read<int64_t>();
    return type == c10::kBool ? c10::Scalar(integer != 0) : c10::Scalar(integer);
  }
};

template <class T>
struct Pack<std::vector<T>> {
  static void write(const std::vector<T>& value, Writer& to) {
    to.write_size(value.size());
    for (size_t i = 0; i < value.size(); ++i) to.write_part<T>(i, value[i]);
  }
  static std::vector<T> read(Reader& from) {
    std::vector<T> value;
    size_t size = from.read_size();
    value.reserve(size);
    for (size_t i = 0; i < size; ++i) value.push_back(from.read<T>());
    return value;
  }
};

template <class T>
struct Pack<c10::ArrayRef<T>> {
  static void write(c10::ArrayRef<T> value, Writer& to) { to.write(value.vec()); }
  static c10::ArrayRef<T> read(Reader& from) { return from.keep(from.read<std::vector<T>>()); }
};

template <class T>
struct Pack<c10::OptionalArrayRef<T>> {
  static void write(c10::OptionalArrayRef<T> value, Writer& to) { to.write(value ? std::optional(value->vec()) : std::nullopt); }
  static c10::OptionalArrayRef<T> read(Reader& from) {
    const auto& kept = from.keep(from.read<std::optional<std::vector<T>>>());
    return kept ? c10::OptionalArrayRef<T>(*kept) : c10::OptionalArrayRef<T>();
  }
};

template <class T, size_t N>
struct Pack<std::array<T, N>> {
  static void write(const std::array<T, N>& value, Writer& to) {
    for (size_t i = 0; i < N; ++i) to.write_part(i, value[i]);
  }
  static std::array<T, N> read(Reader& from) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return std::array<T, N>{((void)I, from.read<T>())...}; }(std::make_index_sequence<N>());
  }
};

template <class... T>
struct Pack<std::tuple<T...>> {
  static void write(const std::tuple<T...>& value, Writer& to) {
    [&]<size_t... I>(std::index_sequence<I...>) { (to.write_part(I, std::get<I>(value)), ...); }(std::index_sequence_for<T...>());
  }
  static std::tuple<T...> read([[maybe_unused]] Reader& from) { return std::tuple<T...>{from.read<T>()...}; }
};

template <class A, class B>
struct Pack<std::pair<A, B>> {
  static void write(const std::pair<A, B>& value, Writer& to) {
    to.write_part(size_t{0}, value.first);
    to.write_part(size_t{1}, value.second);
  }
  static std::pair<A, B> read(Reader& from) { return std::pair<A, B>{from.read<A>(), from.read<B>()}; }
};

template <class T>
struct Pack<std::optional<T>> {
  static void write(const std::optional<T>& value, Writer& to) {
    to.write(value.has_value());
    if (value) to.write(*value);
  }
  static std::optional<T> read(Reader& from) { return from.read<bool>() ? std::optional<T>(from.read<T>()) : std::nullopt; }
};

template <class... T>
struct Pack<std::variant<T...>> {
  static void write(const std::variant<T...>& value, Writer& to) {
    to.write_size(value.index());
    std::visit([&](const auto& held) { to.write(held); }, value);
  }
  static std::variant<T...> read(Reader& from) {
    static constexpr std::variant<T...> (*readers[])(Reader&) = {[](Reader& r) -> std::variant<T...> { return r.read<T>(); }...};
    return readers[from.read_size()](from);
  }
};

template <detail::MapLike T>
struct Pack<T> {
  static void write(const T& value, Writer& to) {
    to.write_size(value.size());
    for (const auto& [key, held] : value) {
      to.write(key);
      to.write_part(key, held);
    }
  }
  static T read(Reader& from) {
    T value;
    for (size_t size = from.read_size(); size > 0; --size) {
      auto key = from.read<typename T::key_type>();
      value.emplace(std::move(key), from.read<typename T::mapped_type>());
    }
    return value;
  }
};

template <class Key, class T>
struct Pack<torch::OrderedDict<Key, T>> {
  static void write(const torch::OrderedDict<Key, T>& value, Writer& to) {
    to.write_size(value.size());
    for (const auto& item : value) {
      to.write(item.key());
      to.write_part(item.key(), item.value());
    }
  }
  static torch::OrderedDict<Key, T> read(Reader& from) {
    torch::OrderedDict<Key, T> value;
    for (size_t size = from.read_size(); size > 0; --size) {
      auto key = from.read<Key>();
      value.insert(std::move(key), from.read<T>());
    }
    return value;
  }
};

}  // namespace tandem
