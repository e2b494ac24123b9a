/// Makes the code of one signature of a compiled function.
#pragma once

#include <tandem/options.h>

#include "aot/roles.h"
#include "cache/order.h"
#include "compile/observe.h"

namespace tandem {

/// Which code it is, and what is known of its inputs.
struct CodePlace {
  Stage stage = Stage::Inference;
  size_t order = 1, variant = 0;
  std::vector<size_t> static_inputs = {}, donated_inputs = {};
  size_t first_tangent = size_t(-1);  ///< none
};

class Toolchain {
 public:
  /// Options and roles outlive it, and may change until it is first used.
  Toolchain(const Options& options, const Roles& roles, size_t function, size_t signature);

  /// Code for the graph by the compiler of its stage; throws Error where that makes none.
  std::shared_ptr<Executable> compile(const Graph& graph, const CodePlace& place) const;
  /// The same from the bytes of an earlier one's artifact, or by the compiler of its stage where that is the
  /// user's own; throws Error where the backend cannot load them.
  std::shared_ptr<Executable> load(const std::string* bytes, const Graph& graph,
                                   const CodePlace& place) const;
  /// Whether the code of a stage is made by a compiler that was given in the options, and has no bytes.
  bool is_of_own_compiler(Stage stage) const;

  /// Throws RunEagerly where the graph has random nodes that draw from states, and whoever compiles that
  /// stage does not say that he minds them.
  void refuse_states(const Graph& graph, Stage stage) const;

  /// Names a graph of this signature to those who look at graphs.
  Sight sight(const char* what, size_t order = 1, size_t variant = 0) const;

 private:
  CompileContext context_of(const Graph& graph, const CodePlace& place) const;
  std::shared_ptr<Executable> checked(std::shared_ptr<Executable> code, const Graph& graph,
                                      const CompileContext& context) const;

  const Options& options_;
  const Roles& roles_;
  const size_t function_, signature_;
  const int threads_;
};

}  // namespace tandem
