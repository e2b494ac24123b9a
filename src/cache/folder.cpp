#include "cache/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "tandem/error.h"

namespace tandem::cache {
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr const char* kElsewhere = ", or set CacheOptions::directory to another folder.";

bool belongs_to_user_or_root(const struct stat& status) {
  return status.st_uid == geteuid() || status.st_uid == 0;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& complaint,
                         const std::string& remedy) {
  throw Error("The cache folder " + path.string() + " " + complaint + "; " + remedy + kElsewhere);
}

Folder checked(Descriptor descriptor, std::filesystem::path path) {
  struct stat status;
  if (fstat(descriptor.get(), &status) != 0)
    refuse(path, "cannot be looked at (" + reason() + ")", "make it accessible");
  if (!belongs_to_user_or_root(status))
    refuse(path, "belongs to user " + std::to_string(status.st_uid) + ", who is neither you nor root",
           "make it yours");
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    refuse(path, "may be written to by others", "take that away with `chmod go-w`");
  return {std::move(descriptor), std::move(path)};
}

std::optional<Folder> opened(int number, const std::filesystem::path& path) {
  if (number >= 0) return checked(Descriptor(number), path);
  if (errno == ENOENT) return std::nullopt;
  refuse(path, "cannot be opened (" + reason() + ")", "make it a folder that you may read");
}

// Who may make a link in a folder that everybody writes to may not send us to a folder of our own.
void check_link(const std::filesystem::path& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode) && !belongs_to_user_or_root(status)) {
    refuse(
        path,
        "is a link that belongs to user " + std::to_string(status.st_uid) + ", who is neither you nor root",
        "make it yours");
  }
}

void make(int result, const std::filesystem::path& path) {
  if (result != 0 && errno != EEXIST) refuse(path, "cannot be made (" + reason() + ")", "make it yourself");
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

std::string reason() { return std::generic_category().message(errno); }

std::optional<Folder> find_folder(const std::filesystem::path& path) {
  check_link(path);
  return opened(::open(path.c_str(), kFolder), path);
}

std::optional<Folder> find_folder(const Folder& parent, const std::string& name) {
  return opened(openat(parent.descriptor.get(), name.c_str(), kFolder | O_NOFOLLOW), parent.path / name);
}

Folder make_folder(const std::filesystem::path& path) {
  if (std::optional<Folder> folder = find_folder(path)) return std::move(*folder);
  const std::filesystem::path parent = path.parent_path();
  std::error_code ignored;  // what is wrong with a parent is said when the folder itself cannot be made
  if (parent != path && !parent.empty() && !std::filesystem::exists(parent, ignored)) make_folder(parent);
  make(mkdir(path.c_str(), S_IRWXU), path);
  if (std::optional<Folder> folder = find_folder(path)) return std::move(*folder);
  refuse(path, "went away while it was being made", "try again");
}

Folder make_folder(const Folder& parent, const std::string& name) {
  if (std::optional<Folder> folder = find_folder(parent, name)) return std::move(*folder);
  make(mkdirat(parent.descriptor.get(), name.c_str(), S_IRWXU), parent.path / name);
  if (std::optional<Folder> folder = find_folder(parent, name)) return std::move(*folder);
  refuse(parent.path / name, "went away while it was being made", "try again");
}

std::vector<std::string> names_in(const Folder& folder) {
  // A descriptor of its own: the place in the listing belongs to the descriptor.
  Descriptor listing(openat(folder.descriptor.get(), ".", kFolder));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(listing ? fdopendir(listing.get()) : nullptr, closedir);
  if (!entries) refuse(folder.path, "cannot be listed (" + reason() + ")", "make it readable");
  listing.release();
  std::vector<std::string> names;
  while (const dirent* entry = readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

}  // namespace tandem::cache
