/// Functions and modules as programs on a list of tensors, and what is made of them.
#pragma once

#include <tandem/detail/signature.h>
#include <tandem/detail/variants.h>
#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace [[gnu::visibility("default")]] tandem {

struct Exported;
struct Joint;

namespace detail {

/// `state` names the parameters and buffers that become inputs; empty for a plain function.
Exported export_program(const Program& program, const std::shared_ptr<torch::nn::Module>& state,
                        const Tensors& example, std::optional<size_t> loss_index);
/// See export_joint_with_tangents.
Joint export_program_with_tangents(const Program& program, const Tensors& example);

/// The function as a program on its tensors, which are all of its arguments.
template <class F>
Program program_of(F fn) {
  if constexpr (TensorsFunction<F>) {
    return [fn](const Tensors& in) { return Returned{fn(in), nullptr}; };
  } else {
    return []<class R, class... Args>(auto invoke, std::type_identity<R(Args...)>) -> Program {
      return [invoke](const Tensors& in) -> Returned {
        if (in.size() != sizeof...(Args))
          throw ContractError("the function takes " + std::to_string(sizeof...(Args)) +
                              " tensors and was given " + std::to_string(in.size()));
        return [&]<size_t... i>(std::index_sequence<i...>) {
          return take_apart<std::remove_cvref_t<R>>(invoke(in[i]...));
        }(std::index_sequence_for<Args...>());
      };
    }(fn, std::type_identity<typename SignatureOf<std::decay_t<F>>::type>());
  }
}

/// The same of a module's `forward`.
template <class Impl>
Program program_of_module(std::shared_ptr<Impl> module) {
  return []<class R, class... Args>(auto impl, std::type_identity<R(Args...)>) {
    return program_of([impl](const std::conditional_t<true, at::Tensor, Args>&... in) -> R {
      return impl->forward(in...);
    });
  }(module, std::type_identity<typename SignatureOf<decltype(&Impl::forward)>::type>());
}

}  // namespace detail
}  // namespace tandem
