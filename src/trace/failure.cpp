#include "trace/failure.h"

namespace tandem {

std::exception_ptr& last_failure() {
  thread_local std::exception_ptr failure;
  return failure;
}

}  // namespace tandem
