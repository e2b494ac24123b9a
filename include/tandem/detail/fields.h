/// The fields of a plain struct, in order, and their names: what lets a struct of tensors be taken apart
/// without saying how.
#pragma once

#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace [[gnu::visibility("default")]] tandem {
namespace detail {

inline constexpr size_t max_fields = 16;

struct AnyField {
  template <class Field>
  operator Field() const;
};
template <class T>
struct AnyBaseOf {
  template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>)
  operator Base() const;
};

template <class T, size_t... I>
constexpr bool has_fields(std::index_sequence<I...>) {
  return requires { T{((void)I, AnyField())...}; };
}
/// Counted from above, since a struct may be unable to leave its last fields out; `max_fields + 1` stands for
/// more.
template <class T, size_t count = max_fields + 1>
constexpr size_t count_fields() {
  if constexpr (count == 0 || has_fields<T>(std::make_index_sequence<count>()))
    return count;
  else
    return count_fields<T, count - 1>();
}

/// References to the fields of `value`.
template <class T>
constexpr auto tie_fields(T& value) {
  constexpr size_t count = count_fields<std::remove_const_t<T>>();
  static_assert(
      !requires { T{AnyBaseOf<T>()}; },
      "tandem: a struct with base classes cannot be taken apart by itself; specialise tandem::Pack for it.");
  static_assert(count <= max_fields,
                "tandem: a struct of more than 16 fields cannot be taken apart by itself; group fields into "
                "structs, or specialise tandem::Pack for it.");
  // A field that is an array of the language would be counted once for each element and fail here: use
  // std::array.
  if constexpr (count == 1) {
    auto& [a] = value;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = value;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = value;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = value;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = value;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = value;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = value;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (count == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}

/// The types of the fields of T.
template <class>
struct FieldTypes;
template <class... Field>
struct FieldTypes<std::tuple<Field&...>> {
  using type = std::tuple<std::remove_cv_t<Field>...>;
};
template <class T>
using Fields = typename FieldTypes<decltype(tie_fields(std::declval<T&>()))>::type;

// The name of a field stands at the end of what the compiler calls its address. That needs an object, which
// is never made: memory for a T without one in it.
template <class T>
union Unmade {
  constexpr Unmade() : nothing() {}
  constexpr ~Unmade() {}
  char nothing;
  T value;
};
template <class T>
inline constexpr Unmade<T> unmade{};

// Returns auto, since the compiler explains the type that it would otherwise name behind the address.
template <auto* field>
constexpr auto name_of_address() {
  constexpr auto in_names = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  std::string_view text = __PRETTY_FUNCTION__;
  while (!in_names(text.back())) text.remove_suffix(1);
  size_t begin = text.size();
  while (in_names(text[begin - 1])) --begin;
  return text.substr(begin);
}
template <class T, size_t i>
inline constexpr std::string_view field_name = name_of_address<&std::get<i>(tie_fields(unmade<T>.value))>();

}  // namespace detail
}  // namespace tandem
