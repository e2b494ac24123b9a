/// Wrappers: types made of several tensors, used where a tensor could be.
///
///   struct Pair { at::Tensor a, b; };
///   struct Scaled { Pair inner; std::optional<at::Tensor> bias; double scale; };
///   Pair operator*(const Pair& x, const Pair& y) { return {x.a * y.a, x.b * y.b}; }
///
///   auto fast = tandem::compile([](const Pair& x, const Scaled& w) { return x * w.inner; });
///   Pair y = fast(x, w);                              // called like the original
///   tandem::backward(y, Pair{ga, gb});                // a gradient has the kind of its value
///   Scaled g = tandem::grad_of(w);                    // the gradients, nested alike, constants kept
///
/// A struct of public fields without base classes is a wrapper as it is. Fields are tensors, wrappers,
/// standard containers of these (missing optionals and undefined tensors included), or constants: numbers,
/// strings, enums. The graph sees the inner tensors alone, each named by its path ("argument 1.inner.a"). All
/// else is part of the signature: a call with another constant, another number of tensors or another
/// alternative of a variant is another trace. In results constants are those of the trace. What operators
/// mean for a wrapper is what its own C++ operators do; writes to inner tensors, their aliasing and their
/// gradients are those of plain tensors. Other classes say in a specialisation of tandem::Pack how they are
/// taken apart; tensors may be made on the way.
#pragma once

#include <tandem/detail/gradients.h>

namespace [[gnu::visibility("default")]] tandem {

/// The tensors that a wrapper is made of, in the order of its fields, undefined ones included.
template <class W>
Tensors tensors_of(const W& wrapper) {
  Writer writer;
  writer.write(wrapper);
  return std::move(writer.tensors);
}

/// A wrapper of the same kind and constants with `f(tensor)` in place of every tensor that is defined.
template <class W, class F>
  requires std::is_invocable_r_v<at::Tensor, F&, const at::Tensor&>
W map_tensors(const W& wrapper, F f) {
  static_assert(!detail::borrows<W>,
                "tandem::map_tensors: a wrapper owns what it holds; use std::string and std::vector in place "
                "of pointers and views.");
  Writer writer;
  writer.write(wrapper);
  for (at::Tensor& tensor : writer.tensors)
    if (tensor.defined()) tensor = f(std::as_const(tensor));
  return Reader(writer.tensors, writer.rest).read<W>();
}

/// The gradients that leaves, and tensors with retain_grad(), have accumulated; undefined where there is
/// none.
template <class W>
W grad_of(const W& wrapper) {
  return map_tensors(wrapper, [](const at::Tensor& tensor) {
    return tensor.is_leaf() || tensor.retains_grad() ? tensor.grad() : at::Tensor();
  });
}

/// What a backward leaves behind it.
struct BackwardOptions {
  bool retain_graph = false;  ///< the same graph may be gone through again
  bool create_graph = false;  ///< the gradients may be differentiated
};

/// Accumulates gradients in the leaves behind the wrapper's tensors, along `gradient`, whose undefined
/// tensors stand for none. Throws ContractError when the gradient is of another kind than the wrapper: other
/// alternatives of variants, lengths of containers, missing optionals, constants. (Other types do not pass
/// the C++ compiler.)
template <class W>
void backward(const W& wrapper, const std::type_identity_t<W>& gradient,
              const BackwardOptions& options = {}) {
  auto [tensors, gradients] = detail::value_and_gradient(wrapper, gradient);
  detail::backward(tensors, gradients, options);
}

/// The gradients of the wrapper's tensors along `gradient` with respect to those of `inputs`, as a wrapper of
/// the inputs' kind: undefined where there is none. Throws like `backward`.
template <class W, class Inputs>
Inputs grad(const W& wrapper, const Inputs& inputs, const std::type_identity_t<W>& gradient,
            const BackwardOptions& options = {}) {
  auto [tensors, gradients] = detail::value_and_gradient(wrapper, gradient);
  Writer writer;
  writer.write(inputs);
  return Reader(detail::grad(tensors, writer.tensors, gradients, options), writer.rest).read<Inputs>();
}

/// Makes the wrapper's tensors parameters of the module, named by their paths: "weight.a",
/// "weight.layers.0.b" for `name` "weight". They are the wrapper's own tensors, so both see what optimisers
/// and `to()` do. Tensors that cannot have gradients become buffers, undefined ones nothing. As with
/// register_parameter, a module that is cloned makes its tensors and registers them in `reset()`.
template <class W>
void register_parameters(torch::nn::Module& module, const std::string& name, const W& wrapper) {
  std::vector<std::string> paths;
  Writer writer;
  writer.names = &paths;
  writer.write(wrapper);
  detail::register_parameters(module, name, paths, writer.tensors);
}

}  // namespace tandem
