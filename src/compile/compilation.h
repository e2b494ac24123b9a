/// What the orders of differentiation of one signature have in common while they are compiled.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>

#include "aot/joint.h"
#include "compile/captures.h"
#include "compile/toolchain.h"

namespace tandem {

/// Adds the time that it lives.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// In seconds; what recording the backward and compiling took here, or where a stored entry comes from.
struct CompileTimes {
  double trace = 0, compile = 0;
  double joint = 0, forward = 0, backward = 0;
};

struct Compilation {
  Compilation(const Options& given, size_t function, size_t signature)
      : options(given), toolchain(options, plan.roles, function, signature) {}
  Compilation(const Compilation&) = delete;

  Options options;
  Traced traced;
  Plan plan;
  Pieces pieces;
  Order first;                    ///< of the program itself, cut into its pieces
  std::vector<Capture> captures;  ///< of the trace, in its order
  const Toolchain toolchain;
  CompileTimes times;
  bool has_said_what_is_left = false;  ///< which draws are libtorch's though others are wanted
  bool said_that_one_went = false;     ///< of its backwards, for there being too many
  std::mutex mutex;                    ///< held while any order is recorded or compiled
  /// Called, with the mutex held, when a backward or an order has been added: what it is, of which order, and
  /// the seconds that it took.
  std::function<void(const char* what, size_t order, double seconds)> added;
  /// Called, with the mutex held, when a part of a stored entry turns out to be no good.
  std::function<void(const std::string& why)> found_unfit;

  /// Runs `record` while the tracer knows the captures that live.
  template <class Record>
  auto recorded(const Record& record) {
    struct Release {
      Tracer& tracer;
      ~Release() { tracer.release_real_tensors(); }
    } release{*traced.tracer};
    if (auto tensors = alive(captures)) traced.tracer->hold_captures(*tensors);
    auto made = record();
    if (!made)
      throw UnsupportedError(
          "a backward with other gradients than the first reads tensors that it captured; read them in the "
          "forward too");
    return std::move(*made);
  }
};

}  // namespace tandem
