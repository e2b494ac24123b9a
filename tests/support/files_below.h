/// The files of a folder, for tests. libtorch exports directory iterators of an older C++ library, which a
/// program that links its own statically gets half of.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem::test {

/// What lies in a folder, links not followed; nothing where there is no such folder.
inline std::vector<std::filesystem::path> in_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  DIR* open = opendir(folder.c_str());
  if (open == nullptr) return found;
  while (const dirent* entry = readdir(open))
    if (const std::string name = entry->d_name; name != "." && name != "..") found.push_back(folder / name);
  closedir(open);
  return found;
}

inline bool is_folder(const std::filesystem::path& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// The same with all that lies below, folders before what is in them.
inline std::vector<std::filesystem::path> below_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const std::filesystem::path& path : in_folder(folder)) {
    found.push_back(path);
    if (!is_folder(path)) continue;
    const auto below = below_folder(path);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

inline void remove_folder(const std::filesystem::path& folder) {
  const auto below = below_folder(folder);
  for (auto path = below.rbegin(); path != below.rend(); ++path) std::remove(path->c_str());
  std::remove(folder.c_str());
}

/// What is no folder below a folder.
inline std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files = below_folder(folder);
  std::erase_if(files, is_folder);
  return files;
}

}  // namespace tandem::test
