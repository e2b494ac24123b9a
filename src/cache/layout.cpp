#include "cache/layout.h"

#include <algorithm>

#include "tandem/error.h"

namespace tandem::cache {
namespace {

struct Place {
  Kind kind;
  const char* folder;
};
constexpr Place kPlaces[] = {{Kind::Entry, "entries"}, {Kind::Artifact, "artifacts"}};

std::string folder_of(Kind kind) { return kPlaces[static_cast<size_t>(kind)].folder; }

// Folders with very many files are slow on some file systems.
std::string part_of(const std::string& name) { return name.substr(0, 2); }

bool is_hex(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

void check_name(const std::string& name) {
  if (!is_hex(name))
    throw Error("\"" + name + "\" is no name of a cache file; names are lower-case hexadecimal digits.");
}

std::optional<Folder> find_place(const Folder& root, Kind kind, const std::string& name) {
  const std::optional<Folder> parent = find_folder(root, folder_of(kind));
  return parent ? find_folder(*parent, part_of(name)) : std::nullopt;
}

Folder make_place(const Folder& root, Kind kind, const std::string& name) {
  return make_folder(make_folder(root, folder_of(kind)), part_of(name));
}

void walk(const Folder& root, const std::function<void(Kind, const Folder&, const std::string&)>& visit) {
  for (const Place& place : kPlaces) {
    const std::optional<Folder> parent = find_folder(root, place.folder);
    if (!parent) continue;
    for (const std::string& part : names_in(*parent)) {
      const std::optional<Folder> folder = is_hex(part) ? find_folder(*parent, part) : std::nullopt;
      if (!folder) continue;
      for (const std::string& name : names_in(*folder)) visit(place.kind, *folder, name);
    }
  }
}

std::vector<StoredFile> list_files(const Folder& root) {
  std::vector<StoredFile> files;
  walk(root, [&](Kind kind, const Folder& folder, const std::string& name) {
    if (!is_hex(name) || folder.path.filename() != part_of(name)) return;
    if (const std::optional<struct stat> status = look_at(folder, name))
      files.push_back({kind, name, uint64_t(status->st_size), last_use(*status)});
  });
  return files;
}

}  // namespace tandem::cache
