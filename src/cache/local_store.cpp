#include "cache/local_store.h"

#include <cerrno>

#include "cache/eviction.h"
#include "tandem/error.h"

namespace tandem::cache {
namespace {

constexpr std::chrono::hours kLongestCompile{1};

Fetched damaged(std::string complaint) { return {Fetched::State::Damaged, {}, std::move(complaint)}; }

uint64_t remove_abandoned(const Folder& root) {
  uint64_t count = 0;
  walk(root, [&](Kind, const Folder& folder, const std::string& name) {
    count += is_abandoned(folder, name) && remove_file(folder, name);
  });
  return count;
}

}  // namespace

LocalStore::LocalStore(const std::filesystem::path& directory, std::string signing_key, uint64_t max_bytes)
    : directory_(std::filesystem::absolute(directory)),
      signing_key_(std::move(signing_key)),
      max_bytes_(max_bytes) {
  find_folder(directory_);  // refuses an unsafe one at once
}

Fetched LocalStore::read(const Descriptor& file, Kind kind, const std::string& name) const {
  const std::optional<std::string> bytes = file ? read_all(file) : std::nullopt;
  if (!bytes) return errno == ENOENT ? Fetched{} : damaged("cannot be read (" + reason() + ")");
  Opened opened = open(kind, name, *bytes, signing_key_);
  if (!opened.complaint.empty()) return damaged(std::move(opened.complaint));
  return {Fetched::State::Found, std::move(opened.payload), {}};
}

Fetched LocalStore::get(Kind kind, const std::string& name) {
  check_name(name);
  const std::optional<Folder> root = find_folder(directory_);
  const std::optional<Folder> place = root ? find_place(*root, kind, name) : std::nullopt;
  if (!place) return {};
  const Descriptor file = open_file(*place, name);
  Fetched fetched = read(file, kind, name);
  if (fetched.state == Fetched::State::Found) mark_as_used(file);
  if (fetched.state == Fetched::State::Damaged && file) discard(*place, name, file);
  return fetched;
}

Fetched LocalStore::look(Kind kind, const std::string& name) const {
  check_name(name);
  const std::optional<Folder> root = find_folder(directory_);
  const std::optional<Folder> place = root ? find_place(*root, kind, name) : std::nullopt;
  return place ? read(open_file(*place, name), kind, name) : Fetched{};
}

bool LocalStore::has_whole(const Folder& place, Kind kind, const std::string& name) const {
  const Descriptor file = open_file(place, name);
  if (read(file, kind, name).state != Fetched::State::Found) return false;
  mark_as_used(file);
  return true;
}

void LocalStore::put(Kind kind, const std::string& name, const std::string& payload) {
  check_name(name);
  const Folder root = make_folder(directory_);
  const Folder place = make_place(root, kind, name);
  if (kind == Kind::Artifact && has_whole(place, kind, name)) return;
  const std::string sealed = seal(kind, name, payload, signing_key_);
  if (sealed.size() > max_bytes_) {
    throw Error("The cache file " + (place.path / name).string() + " would have " +
                std::to_string(sealed.size()) + " bytes, and the cache may have " +
                std::to_string(max_bytes_) + "; set CacheOptions::max_bytes to more.");
  }
  write_file(place, name, sealed);
  make_room(root, sealed.size());
}

// Looking through a large folder at every put would be slow: it is done at the first put of a process, when
// the folder may be full, and now and then, for what others put.
void LocalStore::make_room(const Folder& root, uint64_t added) {
  const uint64_t margin = max_bytes_ / 16;
  const std::lock_guard guard(mutex_);
  added_ += added;
  if (counted_ && added_ <= margin && *counted_ + added_ <= max_bytes_) return;
  std::vector<StoredFile> files = list_files(root);
  counted_ = total_bytes(files);
  added_ = 0;
  if (*counted_ <= max_bytes_) return;
  const std::optional<Descriptor> lock = try_lock_removal(root);
  if (!lock) return;  // somebody else is making room
  remove_abandoned(root);
  for (const StoredFile& file : least_recently_used(std::move(files), max_bytes_ - margin)) {
    if (remove_unless_used(root, file)) *counted_ -= file.bytes;
  }
}

std::vector<StoredFile> LocalStore::list() const {
  const std::optional<Folder> root = find_folder(directory_);
  return root ? list_files(*root) : std::vector<StoredFile>{};
}

LocalTotals LocalStore::stats() const {
  LocalTotals totals;
  for (const StoredFile& file : list()) {
    ++(file.kind == Kind::Entry ? totals.entries : totals.artifacts);
    totals.bytes += file.bytes;
  }
  return totals;
}

bool LocalStore::remove(Kind kind, const std::string& name) {
  check_name(name);
  const std::optional<Folder> root = find_folder(directory_);
  const std::optional<Folder> place = root ? find_place(*root, kind, name) : std::nullopt;
  return place && remove_file(*place, name);
}

uint64_t LocalStore::clear() {
  const std::optional<Folder> root = find_folder(directory_);
  if (!root) return 0;
  uint64_t count = 0;
  for (const StoredFile& file : list_files(*root)) count += remove(file.kind, file.name);
  remove_abandoned(*root);
  return count;
}

std::vector<DamagedFile> LocalStore::verify() const {
  std::vector<DamagedFile> found;
  for (const StoredFile& file : list()) {
    Fetched fetched = look(file.kind, file.name);
    if (fetched.state == Fetched::State::Damaged)
      found.push_back({file.kind, file.name, std::move(fetched.complaint)});
  }
  return found;
}

Collected LocalStore::gc(const std::function<bool(const StoredFile&)>& is_needed) {
  Collected collected;
  const std::optional<Folder> root = find_folder(directory_);
  if (!root) return collected;
  const Descriptor lock = lock_removal(*root);
  collected.abandoned = remove_abandoned(*root);

  const auto remove_counted = [&](const StoredFile& file, uint64_t& count) {
    if (!remove_unless_used(*root, file)) return false;
    ++count;
    collected.bytes += file.bytes;
    return true;
  };
  std::vector<StoredFile> files = list_files(*root);
  if (is_needed) {
    const Time long_ago = std::chrono::system_clock::now() - kLongestCompile;
    std::erase_if(files, [&](const StoredFile& file) {
      return file.last_use < long_ago && !is_needed(file) && remove_counted(file, collected.unneeded);
    });
  }
  for (const StoredFile& file : least_recently_used(std::move(files), max_bytes_))
    remove_counted(file, collected.evicted);
  return collected;
}

}  // namespace tandem::cache
