/// Programs that ask torch.compiler.is_compiling() are told so.
#pragma once

#include <memory>

#include "ran_code.h"

namespace tandem::python {

/// They are while this lives; the GIL is held where it begins and ends.
class Compiling {
 public:
  Compiling() { tell("enter"); }
  ~Compiling() {
    py::error_scope error;  // that is on its way
    tell("leave");
  }
  Compiling(const Compiling&) = delete;

 private:
  static void tell(const char* what);
};

/// The same for whoever does not hold it: until the last owner lets go.
std::shared_ptr<void> compiling_anywhere();

/// Whether code that ran asked.
bool asked_whether_compiling(const std::vector<RanCode>& ran);

}  // namespace tandem::python
