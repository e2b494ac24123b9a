/// A new folder for a test, gone afterwards with all that is in it.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/files_below.h"

class ScratchFolder {
 public:
  ScratchFolder() : inherited_(getenv(kVariable)) {
    // Tests of root's that become somebody else could not enter a TMPDIR of root's own.
    const std::filesystem::path parent =
        geteuid() == 0 ? std::filesystem::path("/tmp") : std::filesystem::temp_directory_path();
    std::string name = (parent / "tandem-cache-XXXXXX").string();
    path_ = inherited_ ? inherited_ : mkdtemp(name.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    if (inherited_) return;
    unsetenv(kVariable);
    std::error_code ignored;
    for (const std::filesystem::path& entry : tandem::test::below_folder(path_))
      if (tandem::test::is_folder(entry))
        std::filesystem::permissions(entry, std::filesystem::perms::owner_all, ignored);
    tandem::test::remove_folder(path_);
  }

  /// Programs that this one starts have this same folder, and leave it to this one to remove it.
  void share() const { setenv(kVariable, path_.c_str(), 1); }
  const std::filesystem::path& path() const { return path_; }

 private:
  static constexpr const char* kVariable = "TANDEM_TEST_SCRATCH";

  const char* inherited_;
  std::filesystem::path path_;
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}
