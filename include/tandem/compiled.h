/// Compiled functions of lists of tensors, and what can be asked of them.
#pragma once

#include <tandem/contract.h>
#include <tandem/detail/function.h>
#include <tandem/options.h>

#include <map>

namespace [[gnu::visibility("default")]] tandem {

/// A function of a list of tensors, of which an undefined one stands for none.
using Callable = std::function<Tensors(const Tensors&)>;

/// How many calls of its code make up one half of a step.
struct CallCounts {
  size_t kernels = 0, library_calls = 0;  ///< generated ones, and those of libraries
};

/// What a compile did and why.
struct Explanation {
  Graph joint, forward, backward;  ///< backward empty for inference
  Contract contract;
  std::string key, cache_state = "off", bypass_reason;
  std::vector<std::string> key_components;  ///< "name: hash", to see why two keys differ
  /// of a step, above what is alive before it; 0 for inference
  int64_t predicted_peak_bytes = 0;
  /// distinct storages kept between forward and backward, neither inputs nor outputs
  int64_t saved_bytes = 0, eager_saved_bytes = 0;
  std::vector<SavedValue> saved;  ///< what is kept between forward and backward, and why
  /// What a step calls, its forward and then its backward; empty where the code does not say.
  std::vector<KernelInfo> kernels;
  CallCounts calls(Stage stage) const;  ///< of these, those of one half, or of inference
  /// why calls like this run as they are, uncompiled; empty when they are compiled
  std::string eager_reason;
  size_t nodes_recorded = 0;  ///< before any pass
  double trace_seconds = 0, compile_seconds = 0;
};

/// A compiled function of a list of tensors: called and trained like the original; copies share their state;
/// calls are thread-safe.
class Compiled {
 public:
  /// Of nothing yet: assign what `compile` returns; a call before that throws Error.
  Compiled() = default;
  Compiled(Callable callable, Options options);
  /// What the original returns for these inputs, with its effects on them and its gradients.
  Tensors operator()(const Tensors& inputs) const { return detail::call(function(), inputs).tensors; }
  /// Traces and compiles for these inputs without running, and says what came of it.
  Explanation explain(const Tensors& inputs) const { return detail::explain(function(), inputs); }

 private:
  detail::Function& function() const {
    if (!function_) detail::refuse_empty("function");
    return *function_;
  }

  std::shared_ptr<detail::Function> function_;
};

/// How often each thing happened in this process: `trace`, `joint_trace`, `partition`, `compile_forward`, ...
std::map<std::string, uint64_t> counters();

/// Forgets everything compiled in this process and resets the backends and counters; what is on disk stays.
void reset();

}  // namespace tandem
