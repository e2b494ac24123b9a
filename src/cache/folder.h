/// Folders that only their owner writes to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::cache {

/// A file descriptor, closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

/// An open folder: what happens to its path later does not lead us elsewhere.
struct Folder {
  Descriptor descriptor;
  std::filesystem::path path;  ///< for messages
};

/// Each throws Error when the folder is not one, may be written to by others, or belongs to neither the user
/// nor root. "find" gives nothing when it is absent; "make" makes it, and what leads to it, for the user
/// alone. In a folder, links are not followed.
std::optional<Folder> find_folder(const std::filesystem::path& path);
std::optional<Folder> find_folder(const Folder& parent, const std::string& name);
Folder make_folder(const std::filesystem::path& path);
Folder make_folder(const Folder& parent, const std::string& name);

std::vector<std::string> names_in(const Folder& folder);

/// "Permission denied" and the like, for the errno of the call before.
std::string reason();

}  // namespace tandem::cache
