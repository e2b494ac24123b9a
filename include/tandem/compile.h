/// Compiles C++ functions.
///
///   auto loss = [&](at::Tensor x, at::Tensor y) { return (model->forward(x) - y).square().mean(); };
///   auto step = tandem::compile(loss, {.watch = {model.ptr()}});
///   step(x, y).backward();                             // compiled at the first call with such inputs
///   std::cout << step.explain(x, y).backward.to_string();
///
/// Modules are compiled by module.h, TorchScript by script.h; options.h says what can be asked for.
#pragma once

#include <tandem/detail/signature.h>
#include <tandem/detail/typed.h>

namespace [[gnu::visibility("default")]] tandem {

template <class Signature>
class CompiledFunction;

/// Compiles a function of tensors (and numbers, strings, containers and structs of them); the result is
/// called like the original.
template <detail::TypedFunction F>
CompiledFunction<detail::Signature<F>> compile(F&& fn, Options options = {}) {
  return {std::decay_t<F>(std::forward<F>(fn)), std::move(options)};
}

/// Compiles a function of a list of tensors, at its first call with inputs of each kind.
template <detail::TensorsFunction F>
Compiled compile(F&& fn, Options options = {}) {
  return Compiled(detail::copyable(std::forward<F>(fn)), std::move(options));
}

/// Says what to write instead of a function whose parameters cannot be read.
template <detail::HasNoSignature F>
void compile(F&&, Options = {}) {
  static_assert(!std::is_member_function_pointer_v<std::decay_t<F>>,
                "tandem::compile: a member function has no object; compile the module itself, or a lambda "
                "that calls it on one.");
  static_assert(!std::is_same_v<std::remove_cvref_t<F>, torch::nn::AnyModule>,
                "tandem::compile: an AnyModule hides what its forward takes; compile the module that it "
                "holds, or a lambda that calls it.");
  static_assert(!detail::IsGeneric<std::decay_t<F>>,
                "tandem::compile: auto parameters have no types to compile for; name them, as in [](const "
                "at::Tensor& x).");
}

/// A compiled function with the parameters and the result of the original. Numbers, strings and the like
/// among the arguments are part of the signature: another value is another trace. Copies share their state;
/// calls are thread-safe.
template <class R, class... Args>
class CompiledFunction<R(Args...)> {
 public:
  /// Of nothing yet: assign what `compile` returns; a call before that throws Error.
  CompiledFunction() = default;
  template <class F>
  CompiledFunction(F fn, Options options)
      : typed_(std::make_shared<detail::Typed<R(Args...)>>(std::move(fn), std::move(options))) {}

  /// What the original returns for these arguments, with its effects on them and its gradients.
  std::remove_cvref_t<R> operator()(const std::remove_cvref_t<Args>&... args) const {
    Writer writer;
    auto function = find(writer, args...);
    return detail::call_like_original<std::remove_cvref_t<R>>(*function, writer.tensors);
  }
  /// Traces and compiles for these arguments without running, and says what came of it.
  Explanation explain(const std::remove_cvref_t<Args>&... args) const {
    Writer writer;
    auto function = find(writer, args...);
    return detail::explain(*function, writer.tensors);
  }

 private:
  std::shared_ptr<detail::Function> find(Writer& writer, const std::remove_cvref_t<Args>&... args) const {
    if (!typed_) detail::refuse_empty("function");
    return typed_->find(writer, args...);
  }

  std::shared_ptr<detail::Typed<R(Args...)>> typed_;
};

}  // namespace tandem
