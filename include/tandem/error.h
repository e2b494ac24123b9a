/// What Tandem throws: one sentence that says what, which argument or node, and what to do instead.
#pragma once

#include <stdexcept>
#include <string>

namespace [[gnu::visibility("default")]] tandem {

/// Any failure of Tandem's own.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The function cannot be traced or compiled ahead of time; names the operator and where the user's program
/// called it.
struct UnsupportedError : Error {
  using Error::Error;
};

/// A call that no retrace can serve: wrong arity of a module, an exported graph run on other shapes, a
/// gradient of another kind than its value.
struct ContractError : Error {
  using Error::Error;
};

/// Strict mode only: the cache could not be used as asked.
struct CacheError : Error {
  using Error::Error;
};

}  // namespace tandem
