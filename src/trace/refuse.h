/// What cannot be known ahead of time, said clearly.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <string_view>

#include "base/for_python.h"

namespace tandem {

/// Held while an operator that the program itself called is on its way; operators called inside it are
/// libtorch's doing.
class OutermostCall {
 public:
  explicit OutermostCall(const c10::OperatorHandle& op);
  ~OutermostCall();

 private:
  const bool is_outermost_;
};

/// Held while a trace goes on: the node of autograd that runs already, if one does, is none of the trace's.
class AroundTrace {
 public:
  AroundTrace();
  ~AroundTrace();
  AroundTrace(const AroundTrace&) = delete;

 private:
  const void* const previous_;
};

/// " (called at file:line)", or nothing where that cannot be found out.
std::string called_at();

/// The operator's result sizes or values depend on the data: throws UnsupportedError where the program asked
/// for that, RunEagerly where libtorch reads data inside an operator whose results can be known.
[[noreturn]] void refuse_data_dependent(const c10::OperatorHandle& op);

/// Whether libtorch complained that a fake has no memory to point to.
TANDEM_FOR_PYTHON bool asks_for_data(std::string_view error);

/// An operator reads memory directly: throws RunEagerly.
[[noreturn]] void refuse_data_access(const c10::OperatorHandle& op);
/// The program itself does: throws UnsupportedError.
TANDEM_FOR_PYTHON [[noreturn]] void refuse_data_access();

}  // namespace tandem
