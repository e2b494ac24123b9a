/// Where the files of a local store lie: <folder>/entries/<2 digits>/<name> and <folder>/artifacts/<2
/// digits>/<name>.
#pragma once

#include <functional>

#include "cache/file.h"
#include "cache/frame.h"

namespace tandem::cache {

struct StoredFile {
  Kind kind;
  std::string name;
  uint64_t bytes = 0;
  Time last_use;
};

/// Throws Error unless it is lower-case hex.
void check_name(const std::string& name);

/// The folder that has, or is to have, the file.
std::optional<Folder> find_place(const Folder& root, Kind kind, const std::string& name);
Folder make_place(const Folder& root, Kind kind, const std::string& name);

/// Calls `visit` with every file, temporary ones and strangers as well, and the folder that it is in.
void walk(const Folder& root, const std::function<void(Kind, const Folder&, const std::string&)>& visit);
/// The files that were put, in no particular order.
std::vector<StoredFile> list_files(const Folder& root);

}  // namespace tandem::cache
