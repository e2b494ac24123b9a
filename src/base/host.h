/// What a language above C++ does with our errors.
#pragma once

#include <ATen/core/ivalue.h>
#include <tandem/error.h>

#include <functional>
#include <optional>
#include <vector>

#include "base/for_python.h"

namespace torch::autograd {
struct Node;
}

namespace tandem {

/// Where such a language sets how an error in a backward, which reaches it through libtorch's engine, becomes
/// one of its own: throws, or returns when it cannot.
TANDEM_FOR_PYTHON std::function<void(const Error&)>& raise_in_host();

/// Where such a language sets how objects that only refer to each other are dropped now; empty where there is
/// none.
TANDEM_FOR_PYTHON std::function<void()>& drop_garbage();

/// Where such a language sets how a number of a graph is found behind what it hands to operators: a symbolic
/// number, or a wrapped one that it made for it; undefined where it is a constant.
TANDEM_FOR_PYTHON std::function<at::Tensor(const c10::IValue&)>& symbol_in_host();

/// Where such a language sets how it is found out whether the hooks on saved tensors that it has set last are
/// those of its library's checkpoints, and run no code but that of the library and of the function in one;
/// empty where there are none.
TANDEM_FOR_PYTHON std::function<bool()>& sets_checkpoint_in_host();

/// A checkpoint of such a language's whose backward calls the function again and then `backward()`.
struct HostCheckpoint {
  struct Again {
    std::vector<at::Tensor> outputs, gradients;  ///< those that require grad, and their gradients
    std::vector<at::Tensor> inputs;              ///< leaves that the function was called with
  };
  std::function<std::vector<at::Tensor>()> saved;  ///< the tensors that it was called with at first
  std::function<Again(const std::vector<at::Tensor>& saved, const std::vector<at::Tensor>& gradients)>
      call_again;
};
/// Where such a language sets how a node of autograd's is found to be one; empty where there are none.
TANDEM_FOR_PYTHON std::function<std::optional<HostCheckpoint>(torch::autograd::Node&)>& checkpoint_in_host();

}  // namespace tandem
