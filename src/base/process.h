/// Other programs, run to their end.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct Finished {
  int status = 0;  ///< the exit status; 127 where the program was not found, 128 + n where signal n ended it
  std::string output;  ///< what it wrote to its standard output
};

/// Runs a program (looked for in PATH unless its name has a slash) to its end; `environment` is added to
/// ours. Its errors go where ours go, or nowhere.
enum class Errors : bool { Shown, Hidden };
Finished run_program(const std::vector<std::string>& command,
                     const std::vector<std::pair<std::string, std::string>>& environment = {},
                     Errors errors = Errors::Shown);

}  // namespace tandem
