/// Other programs, and the files that ship with this one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/process.h"

namespace tandem::cli {

/// The program that is running.
std::filesystem::path this_program();

/// A file or folder that ships with Tandem, by its path in the repository: beside the build folder, or under
/// share/tandem of an installation.
std::optional<std::filesystem::path> find_shipped(const std::filesystem::path& path);

/// A Python that can import torch and its torch's version: $TANDEM_PYTHON, the repository's .venv, or
/// python3.
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
