/// How tensors, numbers, strings, enums, standard containers and structs are taken apart.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/util/OptionalArrayRef.h>
#include <tandem/detail/fields.h>
#include <tandem/pack.h>

#include <array>
#include <complex>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

namespace torch {
template <typename Key, typename Value>
class OrderedDict;
}

namespace [[gnu::visibility("default")]] tandem {

namespace detail {

template <class>
inline constexpr bool always_false = false;

/// Types whose bytes are their value.
template <class T>
concept PlainValue = (std::is_arithmetic_v<T> && !std::is_same_v<T, long double>) || std::is_enum_v<T> ||
                     std::is_same_v<T, c10::Device> || std::is_same_v<T, std::complex<float>> ||
                     std::is_same_v<T, std::complex<double>> || std::is_same_v<T, c10::complex<float>> ||
                     std::is_same_v<T, c10::complex<double>>;

/// Types whose value is the type itself: the alternatives of libtorch's option variants, std::monostate,
/// plain functors.
template <class T>
concept Tag = std::is_empty_v<T> && std::is_default_constructible_v<T>;

template <class T>
concept MapLike = requires(T map, typename T::key_type key, typename T::mapped_type value) {
  map.emplace(std::move(key), std::move(value));
};

/// Structs of public fields.
template <class T>
concept Struct = std::is_aggregate_v<T> && std::is_class_v<T> && !Tag<T> && !MapLike<T>;

/// Types that refer to memory of somebody else: good for parameters, not for what outlives the call.
template <class T>
inline constexpr bool borrows = std::is_pointer_v<T>;
template <template <class...> class Container, class... T>
inline constexpr bool borrows<Container<T...>> = (borrows<T> || ...);
template <class T, size_t N>
inline constexpr bool borrows<std::array<T, N>> = borrows<T>;
template <>
inline constexpr bool borrows<std::string_view> = true;
template <class T>
inline constexpr bool borrows<c10::ArrayRef<T>> = true;
template <class T>
inline constexpr bool borrows<c10::OptionalArrayRef<T>> = true;

}  // namespace detail

template <class T>
struct Pack {
  static_assert(
      detail::always_false<T>,
      "tandem::compile: this argument or result type cannot be taken apart; use tensors, numbers, strings, "
      "enums, standard containers and structs of them, or specialise tandem::Pack for it.");
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
    if (value.isComplex())
      to.write(value.toComplexDouble());
    else if (value.isFloatingPoint())
      to.write(value.toDouble());
    else
      to.write(value.toLong());
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
  static void write(c10::OptionalArrayRef<T> value, Writer& to) {
    to.write(value ? std::optional(value->vec()) : std::nullopt);
  }
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
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::array<T, N>{((void)I, from.read<T>())...};
    }(std::make_index_sequence<N>());
  }
};

template <class... T>
struct Pack<std::tuple<T...>> {
  static void write(const std::tuple<T...>& value, Writer& to) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      (to.write_part(I, std::get<I>(value)), ...);
    }(std::index_sequence_for<T...>());
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
  static std::optional<T> read(Reader& from) {
    return from.read<bool>() ? std::optional<T>(from.read<T>()) : std::nullopt;
  }
};

template <class... T>
struct Pack<std::variant<T...>> {
  static void write(const std::variant<T...>& value, Writer& to) {
    to.write_size(value.index());
    std::visit([&]<class Held>(const Held& held) { to.write_held(held); }, value);
  }
  static std::variant<T...> read(Reader& from) {
    static constexpr std::variant<T...> (*readers[])(Reader&) = {
        [](Reader& r) -> std::variant<T...> { return r.read<T>(); }...};
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

template <detail::Struct T>
struct Pack<T> {
  using Fields = detail::Fields<T>;
  using Places = std::make_index_sequence<std::tuple_size_v<Fields>>;
  static_assert(!detail::borrows<Fields>,
                "tandem: the fields of a struct own what they hold; use std::string and std::vector in place "
                "of pointers and views.");

  static void write(const T& value, Writer& to) {
    auto fields = detail::tie_fields(value);
    [&]<size_t... I>(std::index_sequence<I...>) {
      (to.write_part(detail::field_name<T, I>, std::get<I>(fields)), ...);
    }(Places());
  }
  static T read(Reader& from) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return T{from.read<std::tuple_element_t<I, Fields>>()...};
    }(Places());
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
