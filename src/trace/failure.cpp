#include "trace/failure.h"

#include <tandem/error.h>

#include <utility>

namespace tandem {

std::exception_ptr& last_failure() {
  thread_local std::exception_ptr failure;
  return failure;
}

void rethrow_refusal() {
  std::exception_ptr failure = std::exchange(last_failure(), nullptr);
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const UnsupportedError&) {
    throw;
  } catch (...) {
  }
}

}  // namespace tandem
