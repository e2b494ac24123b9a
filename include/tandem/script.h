/// Compiles TorchScript modules.
#pragma once

#include <tandem/compiled.h>
#include <tandem/error.h>

#include <concepts>
#include <string>
#include <unordered_map>

namespace torch::jit {
struct Module;
}

namespace [[gnu::visibility("default")]] tandem {

using Keywords = std::unordered_map<std::string, c10::IValue>;

/// A compiled TorchScript module: IValues in, IValue out, as the module's own `forward`; its parameters and
/// buffers are the module's own. Numbers, strings and the like among the arguments are part of the signature.
/// Copies share their state; calls are thread-safe.
class CompiledScript {
 public:
  /// Of nothing yet: assign what `compile` returns; a call before that throws Error.
  CompiledScript() = default;
  CompiledScript(const torch::jit::Module& module, Options options);

  /// What `forward` returns; throws ContractError that names the argument when the call does not fit the
  /// script's signature.
  c10::IValue operator()(std::vector<c10::IValue> arguments, const Keywords& keywords = {}) const;
  template <class First, class... Rest>
    requires(!std::same_as<std::remove_cvref_t<First>, std::vector<c10::IValue>> &&
             std::constructible_from<c10::IValue, First> &&
             (std::constructible_from<c10::IValue, Rest> && ...))
  c10::IValue operator()(First&& first, Rest&&... rest) const {
    return (*this)(std::vector<c10::IValue>{c10::IValue(std::forward<First>(first)),
                                            c10::IValue(std::forward<Rest>(rest))...});
  }
  /// Traces and compiles for these arguments without running, and says what came of it.
  Explanation explain(std::vector<c10::IValue> arguments, const Keywords& keywords = {}) const;
  template <class First, class... Rest>
    requires(!std::same_as<std::remove_cvref_t<First>, std::vector<c10::IValue>> &&
             std::constructible_from<c10::IValue, First> &&
             (std::constructible_from<c10::IValue, Rest> && ...))
  Explanation explain(First&& first, Rest&&... rest) const {
    return explain(std::vector<c10::IValue>{c10::IValue(std::forward<First>(first)),
                                            c10::IValue(std::forward<Rest>(rest))...});
  }

  /// The script itself: `->train()`, `->parameters()`, `->save(path)`.
  torch::jit::Module* operator->() const { return get(); }
  torch::jit::Module* get() const;

 private:
  struct State;
  State& state() const;
  std::shared_ptr<State> state_;
};

/// Compiles a TorchScript module; `compile(torch::jit::load("model.pt"))` compiles one from a file.
template <std::same_as<torch::jit::Module> M>
CompiledScript compile(M module, Options options = {}) {
  return CompiledScript(module, std::move(options));
}

}  // namespace tandem
