/// Compiles torch::nn modules.
///
///   auto fast = tandem::compile(model);               // a ModuleHolder or a shared_ptr
///   fast(x).sum().backward();                         // gradients in the parameters of `model`
///   fast->eval();                                     // `->` is the module itself
#pragma once

#include <tandem/compile.h>

namespace [[gnu::visibility("default")]] tandem {

template <class Impl>
class CompiledModule;

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

/// A compiled torch::nn module: called like the module, which `->` reaches; its parameters and buffers are
/// the module's own, so optimisers, `eval()` and `to()` act on both. Copies share their state; calls are
/// thread-safe.
template <class Impl>
class CompiledModule {
 public:
  /// Of nothing yet: assign what `compile` returns; a call before that throws Error.
  CompiledModule() = default;
  CompiledModule(std::shared_ptr<Impl> module, Options options)
      : typed_(std::make_shared<detail::TypedModule<Impl>>(std::move(module), std::move(options))) {}

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

  /// The module itself.
  Impl* operator->() const { return get(); }
  Impl& operator*() const { return *get(); }
  Impl* get() const { return typed_ ? typed_->module.get() : nullptr; }
  std::shared_ptr<Impl> ptr() const { return typed_ ? typed_->module : nullptr; }

 private:
  template <class... Values>
  auto call(const Values&... values) const {
    using Result = std::remove_cvref_t<decltype(std::declval<Impl&>().forward(std::declval<Values>()...))>;
    Writer writer;
    auto function = find(writer, values...);
    return detail::call_like_original<Result>(*function, writer.tensors);
  }
  template <class... Values>
  std::shared_ptr<detail::Function> find(Writer& writer, const Values&... values) const {
    if (!typed_) detail::refuse_empty("module");
    return typed_->find(writer, values...);
  }

  std::shared_ptr<detail::TypedModule<Impl>> typed_;
};

}  // namespace tandem
