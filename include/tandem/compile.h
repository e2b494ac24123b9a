/// Compiles C++ functions.
#pragma once

#include <tandem/variants.h>

namespace torch::nn {
template <typename Contained>
class ModuleHolder;
class AnyModule;
}  // namespace torch::nn
namespace torch::jit {
struct Module;
}

namespace [[gnu::visibility("default")]] tandem {

template <class Signature>
class CompiledFunction;

/// A compiled function with the parameters and the result of the original. Numbers, strings and the like
/// among the arguments are part of the signature: another value is another trace. Copies share their state;
/// calls are thread-safe.
template <class R, class... Args>
class CompiledFunction<R(Args...)> {
  static_assert(((!std::is_lvalue_reference_v<Args> || std::is_const_v<std::remove_reference_t<Args>>) &&
                 ...),
                "tandem::compile: parameters are taken by value or by const reference; a plain reference "
                "could be made to name another tensor, which the caller would not see. "
                "Return the new tensor instead.");
  using Result = std::remove_cvref_t<R>;

 public:
  /// Of nothing yet: assign what `compile` returns; a call before that throws Error.
  CompiledFunction() = default;
  template <class F>
  CompiledFunction(F fn, Options options)
      : state_(std::make_shared<State>(std::move(options), wrap(std::move(fn)))) {}

  Result operator()(const std::remove_cvref_t<Args>&... args) const {
    Writer writer;
    auto function = find(writer, args...);
    return detail::call_like_original<Result>(*function, writer.tensors);
  }
  /// Traces and compiles for these arguments without running, and says what came of it.
  Explanation explain(const std::remove_cvref_t<Args>&... args) const {
    Writer writer;
    auto function = find(writer, args...);
    return detail::explain(*function, writer.tensors);
  }

 private:
  using Invoke = std::function<Result(std::remove_cvref_t<Args>...)>;
  struct State {
    State(Options options, Invoke fn) : variants(std::move(options)), invoke(std::move(fn)) {}
    detail::Variants variants;
    Invoke invoke;
  };

  // Shared, so that functions which cannot be copied, or which carry state of their own, work as well.
  template <class F>
  static Invoke wrap(F fn) {
    return [shared = std::make_shared<F>(std::move(fn))](std::remove_cvref_t<Args>... args) -> Result {
      return (*shared)(std::forward<Args>(args)...);
    };
  }
  std::shared_ptr<detail::Function> find(Writer& writer, const std::remove_cvref_t<Args>&... args) const {
    if (!state_)
      throw Error(
          "a compiled function was called into which nothing was compiled; assign it what tandem::compile "
          "returns first");
    return detail::function_for(state_->variants, state_->invoke, writer, args...);
  }

  std::shared_ptr<State> state_;
};

namespace detail {

template <class>
struct SignatureOf;
template <class R, class... A>
struct SignatureOf<R (*)(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct SignatureOf<R (*)(A...) noexcept> {
  using type = R(A...);
};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...)> {
  using type = R(A...);
};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...) const> {
  using type = R(A...);
};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...) noexcept> {
  using type = R(A...);
};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...) const noexcept> {
  using type = R(A...);
};
template <class F>
  requires requires { &F::operator(); }
struct SignatureOf<F> : SignatureOf<decltype(&F::operator())> {};

template <class Contained>
void accept_holder(const torch::nn::ModuleHolder<Contained>*);
/// Torch modules and scripts have call operators too, but are compiled by overloads of their own; asking a
/// module's whether it takes a Tensors would stop the compiler.
template <class F>
concept IsModule = std::is_same_v<std::remove_cvref_t<F>, torch::jit::Module> ||
                   requires(std::remove_cvref_t<F>* f) { accept_holder(f); };

template <class F, class... A>
concept GenericCall = requires { &F::template operator()<A...>; };
/// One call operator that is a template, as of a lambda with `auto` parameters: asking whether it takes a
/// Tensors would compile its body for one. Where it says that it returns Tensors, it may.
template <class F>
concept IsGeneric =
    std::is_class_v<F> && !requires { &F::operator(); } &&
    ((GenericCall<F, at::Tensor> &&
      !requires {
        requires std::is_same_v<Tensors, decltype(std::declval<F&>().template operator()<at::Tensor>(
                                             std::declval<at::Tensor>()))>;
      }) ||
     GenericCall<F, at::Tensor, at::Tensor> || GenericCall<F, at::Tensor, at::Tensor, at::Tensor> ||
     GenericCall<F, at::Tensor, at::Tensor, at::Tensor, at::Tensor>);

/// What has no signature that could be read.
template <class F>
concept HasNoSignature = std::is_member_function_pointer_v<std::decay_t<F>> ||
                         std::is_same_v<std::remove_cvref_t<F>, torch::nn::AnyModule> ||
                         (!IsModule<F> && IsGeneric<std::decay_t<F>>);

template <class F>
concept TensorsFunction =
    !IsModule<F> && !HasNoSignature<F> && std::is_invocable_r_v<Tensors, std::decay_t<F>&, const Tensors&>;

template <class F>
concept TypedFunction = !IsModule<F> && !HasNoSignature<F> && !TensorsFunction<F> &&
                        requires { typename SignatureOf<std::decay_t<F>>::type; };

}  // namespace detail

/// Compiles a function of a list of tensors, at its first call with inputs of each kind.
template <detail::TensorsFunction F>
Compiled compile(F&& fn, Options options = {}) {
  if constexpr (std::is_copy_constructible_v<std::decay_t<F>>) {
    return Compiled(Callable(std::forward<F>(fn)), std::move(options));
  } else {
    auto shared = std::make_shared<std::decay_t<F>>(std::forward<F>(fn));
    return Compiled([shared](const Tensors& inputs) -> Tensors { return (*shared)(inputs); },
                    std::move(options));
  }
}

/// Compiles a function of tensors (and numbers, strings, containers and structs of them); the result is
/// called like the original.
template <detail::TypedFunction F>
auto compile(F&& fn, Options options = {}) {
  using Signature = typename detail::SignatureOf<std::decay_t<F>>::type;
  return CompiledFunction<Signature>(std::decay_t<F>(std::forward<F>(fn)), std::move(options));
}

/// Says what to write instead.
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

}  // namespace tandem
