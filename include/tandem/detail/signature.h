/// What a function takes and returns, and which overload of `compile` is for it.
#pragma once

#include <tandem/graph.h>

namespace torch::nn {
template <typename Contained>
class ModuleHolder;
class AnyModule;
}  // namespace torch::nn
namespace torch::jit {
struct Module;
}

namespace [[gnu::visibility("default")]] tandem {
namespace detail {

/// The parameters and the result of a function, as the type of one.
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
template <class F>
using Signature = typename SignatureOf<std::decay_t<F>>::type;

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

/// Takes a list of tensors and returns one.
template <class F>
concept TensorsFunction =
    !IsModule<F> && !HasNoSignature<F> && std::is_invocable_r_v<Tensors, std::decay_t<F>&, const Tensors&>;

/// Takes parameters and returns a result of types that can be read.
template <class F>
concept TypedFunction =
    !IsModule<F> && !HasNoSignature<F> && !TensorsFunction<F> && requires { typename Signature<F>; };

/// The module's `forward` can be called with as many arguments, of these types.
template <class Impl, class... Args>
concept forward_takes = requires(Impl& module) { module.forward(std::declval<std::decay_t<Args>>()...); };

}  // namespace detail
}  // namespace tandem
