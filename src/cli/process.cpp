#include "process.h"

#include <tandem/error.h>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace fs = std::filesystem;

namespace tandem::cli {

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

std::optional<fs::path> find_shipped(const fs::path& path) {
  fs::path folder = this_program().parent_path();
  for (;; folder = folder.parent_path()) {
    for (const fs::path& place : {folder / path, folder / "share" / "tandem" / path})
      if (fs::exists(place)) return place;
    if (folder == folder.root_path()) return std::nullopt;
  }
}

std::optional<Python> find_python_with_torch() {
  std::vector<std::string> candidates;
  if (const char* chosen = std::getenv("TANDEM_PYTHON")) candidates.push_back(chosen);
  if (auto own = find_shipped(".venv/bin/python")) candidates.push_back(own->string());
  candidates.push_back("python3");
  for (const std::string& program : candidates) {
    Finished asked =
        run_program({program, "-c", "import torch; print(torch.__version__, end='')"}, {}, Errors::Hidden);
    if (asked.status == 0) return Python{program, asked.output};
  }
  return std::nullopt;
}

namespace {

fs::path make_scratch() {
  std::string name = (fs::temp_directory_path() / "tandem-XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw Error("no temporary folder can be made in " + fs::temp_directory_path().string() + ": " +
                std::strerror(errno));
  return name;
}

}  // namespace

ScratchFolder::ScratchFolder() : path(make_scratch()) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace tandem::cli
