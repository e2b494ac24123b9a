/// Compiles torch::nn modules.
#pragma once

#include <tandem/compile.h>

namespace [[gnu::visibility("default")]] tandem {

namespace detail {

/// The module's `forward` can be called with as many arguments, of these types.
template <class Impl, class... Args>
concept forward_takes = requires(Impl& module) { module.forward(std::declval<std::decay_t<Args>>()...); };

}  // namespace detail

/// A compiled torch::nn module: called like the module, which `->` reaches; its parameters and buffers are
/// the module's own, so optimisers, `eval()` and `to()` act on both. Copies share their state; calls are
/// thread-safe.
template <class Impl>
class CompiledModule {
 public:
  /// Of nothing yet: assign what `compile` returns; a call before that throws Error.
  CompiledModule() = default;
  CompiledModule(std::shared_ptr<Impl> module, Options options)
      : state_(std::make_shared<State>(std::move(module), std::move(options))) {}

  /// What the module's `forward` returns for these arguments; trailing ones that have defaults may be left
  /// out.
  template <class... Args>
    requires detail::forward_takes<Impl, Args...>
  auto operator()(Args&&... args) const {
    return call(static_cast<const std::decay_t<Args>&>(args)...);
  }
  /// The same, for code that calls modules so; `->forward` is the module's own, uncompiled.
  template <class... Args>
    requires detail::forward_takes<Impl, Args...>
  auto forward(Args&&... args) const {
    return call(static_cast<const std::decay_t<Args>&>(args)...);
  }
  /// Traces and compiles for these arguments without running, and says what came of it.
  template <class... Args>
    requires detail::forward_takes<Impl, Args...>
  Explanation explain(Args&&... args) const {
    Writer writer;
    auto function = find(writer, static_cast<const std::decay_t<Args>&>(args)...);
    return detail::explain(*function, writer.tensors);
  }

  Impl* operator->() const { return get(); }
  Impl& operator*() const { return *get(); }
  Impl* get() const { return state_ ? state_->module.get() : nullptr; }
  std::shared_ptr<Impl> ptr() const { return state_ ? state_->module : nullptr; }

 private:
  struct State {
    State(std::shared_ptr<Impl> module_, Options options)
        : module(std::move(module_)), variants(watching(module, std::move(options))) {}
    static Options watching(const std::shared_ptr<Impl>& module, Options options) {
      if (!module) throw Error("compile: the module is empty; construct it first.");
      options.watch.push_back(module);
      return options;
    }
    std::shared_ptr<Impl> module;
    detail::Variants variants;
  };

  template <class... Values>
  auto call(const Values&... values) const {
    using Result = std::remove_cvref_t<decltype(std::declval<Impl&>().forward(std::declval<Values>()...))>;
    Writer writer;
    auto function = find(writer, values...);
    return detail::call_like_original<Result>(*function, writer.tensors);
  }
  template <class... Values>
  std::shared_ptr<detail::Function> find(Writer& writer, const Values&... values) const {
    if (!state_)
      throw Error(
          "a compiled module was called into which nothing was compiled; assign it what tandem::compile "
          "returns first");
    // forward may be a template: calls with other types are other programs.
    static const std::string types = typeid(std::tuple<Values...>).name();
    writer.rest = types;
    auto invoke = [module = state_->module](auto&&... given) -> decltype(auto) {
      return module->forward(std::forward<decltype(given)>(given)...);
    };
    return detail::function_for(state_->variants, invoke, writer, values...);
  }

  std::shared_ptr<State> state_;
};

/// Compiles a module; the result is called like it.
template <class Impl>
CompiledModule<Impl> compile(torch::nn::ModuleHolder<Impl> module, Options options = {}) {
  return CompiledModule<Impl>(module.is_empty() ? nullptr : module.ptr(), std::move(options));
}
template <class Impl>
  requires std::is_base_of_v<torch::nn::Module, Impl>
CompiledModule<Impl> compile(std::shared_ptr<Impl> module, Options options = {}) {
  return CompiledModule<Impl>(std::move(module), std::move(options));
}

}  // namespace tandem
