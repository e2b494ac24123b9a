/// What a program keeps for its backward, as its author wants it.
///
///   at::Tensor forward(at::Tensor x) {
///     for (auto& block : blocks) x = tandem::checkpoint(block, x);    // keeps x, computes the block again
///     return tandem::must_save(x.softmax(-1)).sum();
///   }
#pragma once

#include <tandem/graph.h>

#include <functional>
#include <optional>
#include <utility>

namespace [[gnu::visibility("default")]] tandem {

namespace detail {

/// Calls `run` with the inputs and a place for what it returns, and again in backwards, without one.
void run_checkpoint(std::function<void(const Tensors&, void*)> run, const Tensors& inputs, void* place);

template <class Fn>
auto checkpointed(Fn fn, const Tensors& inputs) {
  using Result = std::invoke_result_t<Fn&, const Tensors&>;
  std::optional<Result> result;
  run_checkpoint(
      [fn = std::move(fn)](const Tensors& in, void* place) mutable {
        Result made = fn(in);
        if (place) static_cast<std::optional<Result>*>(place)->emplace(std::move(made));
      },
      inputs, &result);
  return std::move(*result);
}

}  // namespace detail

/// What `fn` returns for these inputs, of which nothing that it computes is kept for the backward: that calls
/// `fn` again, with the random numbers and under the autocast of the first time, so gradients of every order
/// are those of `fn(inputs...)`. Compiled or not, the inputs and the generators' states are kept, and `fn`
/// itself, which must own what it captures and do the same each time; a backward throws where it saves other
/// tensors than before. Where no gradient is recorded it is a plain call.
template <class Fn, class... Inputs>
  requires((sizeof...(Inputs) > 0) && (std::is_convertible_v<const Inputs&, at::Tensor> && ...))
auto checkpoint(Fn fn, const Inputs&... inputs) {
  auto spread = [fn = std::move(fn)](const Tensors& in) mutable {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return fn(in[I]...);
    }(std::index_sequence_for<Inputs...>());
  };
  return detail::checkpointed(std::move(spread), Tensors{at::Tensor(inputs)...});
}
/// The same of a function that takes all of them in one list.
template <class Fn>
auto checkpoint(Fn fn, const Tensors& inputs) {
  return detail::checkpointed(std::move(fn), inputs);
}

/// `x` itself. In a compiled function the memory of `x` is never computed again: where a backward needs it,
/// it is kept, inside of a checkpoint too.
at::Tensor must_save(at::Tensor x);

/// `x` itself. In a compiled function computing the memory of `x` again counts as nothing: it is done where
/// fewer bytes are kept for it.
at::Tensor prefer_recompute(at::Tensor x);

}  // namespace tandem
