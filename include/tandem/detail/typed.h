/// Functions and modules that are called with arguments of their own types.
#pragma once

#include <tandem/detail/variants.h>
#include <tandem/error.h>

namespace [[gnu::visibility("default")]] tandem {
namespace detail {

template <class Signature>
class Typed;

/// A function with its parameters and the code for each set of arguments; thread-safe.
template <class R, class... Args>
class Typed<R(Args...)> {
  static_assert(((!std::is_lvalue_reference_v<Args> || std::is_const_v<std::remove_reference_t<Args>>) &&
                 ...),
                "tandem::compile: parameters are taken by value or by const reference; a plain reference "
                "could be made to name another tensor, which the caller would not see. "
                "Return the new tensor instead.");

 public:
  template <class F>
  Typed(F fn, Options options) : variants_(std::move(options)), invoke_(share(std::move(fn))) {}

  /// The code for such arguments; `to` is left with the arguments taken apart.
  std::shared_ptr<Function> find(Writer& to, const std::remove_cvref_t<Args>&... args) {
    return function_for(variants_, invoke_, to, args...);
  }

 private:
  using Invoke = std::function<std::remove_cvref_t<R>(std::remove_cvref_t<Args>...)>;
  // Shared, so that functions which cannot be copied, or which carry state of their own, work as well.
  template <class F>
  static Invoke share(F fn) {
    return [shared = std::make_shared<F>(std::move(fn))](
               std::remove_cvref_t<Args>... args) -> std::remove_cvref_t<R> {
      return (*shared)(std::forward<Args>(args)...);
    };
  }

  Variants variants_;
  Invoke invoke_;
};

/// A module and the code for each set of arguments; thread-safe.
template <class Impl>
class TypedModule {
 public:
  TypedModule(std::shared_ptr<Impl> module_, Options options)
      : module(std::move(module_)), variants_(watching(module, std::move(options))) {}

  /// The code for such arguments; `to` is left with the arguments taken apart.
  template <class... Values>
  std::shared_ptr<Function> find(Writer& to, const Values&... values) {
    // forward may be a template: calls with other types are other programs.
    static const std::string types = typeid(std::tuple<Values...>).name();
    to.rest = types;
    auto invoke = [module = module](auto&&... given) -> decltype(auto) {
      return module->forward(std::forward<decltype(given)>(given)...);
    };
    return function_for(variants_, invoke, to, values...);
  }

  const std::shared_ptr<Impl> module;

 private:
  static Options watching(const std::shared_ptr<Impl>& module, Options options) {
    if (!module) throw Error("compile: the module is empty; construct it first.");
    options.watch.push_back(module);
    return options;
  }

  Variants variants_;
};

}  // namespace detail
}  // namespace tandem
