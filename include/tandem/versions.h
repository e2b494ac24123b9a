/// Versions of code that Tandem runs but cannot look into: what uses such code is kept in the cache only when
/// it has one.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <typeinfo>

namespace [[gnu::visibility("default")]] tandem {

namespace detail {

using ContextOf = const torch::autograd::AutogradContext& (*)(const torch::autograd::Node&);
void register_function_node(const std::type_info& node, const std::string& version, ContextOf context);

}  // namespace detail

/// Gives a custom autograd function, a torch::autograd::Function<F>, a version: a promise that its name and
/// version say what its forward and backward compute, in all programs that share a cache. What `saved_data`
/// and `save_for_backward` hold is looked at; other state that the backward reads is part of the promise.
template <class F>
void register_function(const std::string& version) {
  using Node = torch::autograd::CppNode<F>;
  detail::register_function_node(
      typeid(Node), version,
      [](const torch::autograd::Node& node) -> const torch::autograd::AutogradContext& {
        return static_cast<const Node&>(node).ctx_;
      });
}

/// Gives the operators of a namespace ("mylib" of "mylib::scale") a version: a promise as above.
void register_library(const std::string& name, const std::string& version);

}  // namespace tandem
