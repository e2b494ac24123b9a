/// Code of a user's that a cache can tell apart.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace [[gnu::visibility("default")]] tandem {

/// A function with a name and a version; one without them works and is not cached.
template <class Signature>
struct Named : std::function<Signature> {
  std::string name, version;
  Named() = default;
  template <class F>
    requires(!std::is_base_of_v<Named, std::remove_cvref_t<F>> &&
             std::is_constructible_v<std::function<Signature>, F>)
  Named(F fn, std::string name_ = {}, std::string version_ = {})
      : std::function<Signature>(std::move(fn)), name(std::move(name_)), version(std::move(version_)) {}
};

}  // namespace tandem
