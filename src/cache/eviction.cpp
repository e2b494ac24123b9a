#include "cache/eviction.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>

#include "tandem/error.h"

namespace tandem::cache {
namespace {

[[noreturn]] void fail(const Folder& root) {
  const std::string why = reason();
  throw Error("The cache folder " + root.path.string() + " cannot be locked (" + why +
              "), so nothing can be removed from it; give permission, or set CacheOptions::directory to "
              "another folder.");
}

Descriptor open_lock(const Folder& root) {
  Descriptor lock(
      openat(root.descriptor.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock) fail(root);
  return lock;
}

}  // namespace

std::optional<Descriptor> try_lock_removal(const Folder& root) {
  Descriptor lock = open_lock(root);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK && errno != EINTR) fail(root);
  return std::nullopt;
}

Descriptor lock_removal(const Folder& root) {
  Descriptor lock = open_lock(root);
  while (flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) fail(root);
  }
  return lock;
}

uint64_t total_bytes(const std::vector<StoredFile>& files) {
  uint64_t total = 0;
  for (const StoredFile& file : files) total += file.bytes;
  return total;
}

std::vector<StoredFile> least_recently_used(std::vector<StoredFile> files, uint64_t most) {
  std::sort(files.begin(), files.end(),
            [](const StoredFile& a, const StoredFile& b) { return a.last_use < b.last_use; });
  uint64_t total = total_bytes(files);
  size_t count = 0;
  for (; total > most; ++count) total -= files[count].bytes;
  files.resize(count);
  return files;
}

bool remove_unless_used(const Folder& root, const StoredFile& file) {
  const std::optional<Folder> folder = find_place(root, file.kind, file.name);
  const std::optional<struct stat> status = folder ? look_at(*folder, file.name) : std::nullopt;
  return status && last_use(*status) == file.last_use && remove_file(*folder, file.name);
}

}  // namespace tandem::cache
