/// Other programs, and the files that ship with this one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::cli {

struct Finished {
  int status = 0;                           ///< the exit status; 127 where the program was not found, 128 + n where signal n ended it
  std::string output;                       ///< what it wrote to its standard output
};

/// Runs a program (looked for in PATH unless its name has a slash) to its end; `environment` is added to ours. Its errors go where ours go, or nowhere.
enum class Errors : bool { Shown, Hidden };
Finished run_program(const std::vector<std::string>& command, const std::vector<std::pair<std::string, std::string>>& environment = {},
                     Errors errors = Errors::Shown);

/// The program that is running.
std::filesystem::path this_program();

/// A file or folder that ships with Tandem, by its path in the repository: beside the build folder, or under share/tandem of an installation.
std::optional<std::filesystem::path> find_shipped(const std::filesystem::path& path);

/// A Python that can import torch and its torch's version: $TANDEM_PYTHON, the repository's .venv, or python3.
struct Python {
  std::string program, torch_version;
};
std::optional<Python> find_python_with_torch();

/// A new folder of our own, removed with everything in it at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  const std::filesystem::path path;
};

}  // namespace tandem::cli
