/// The store in a folder of the user's, shared by all of the user's processes.
#pragma once

#include <mutex>

#include "cache/layout.h"
#include "cache/store.h"

namespace tandem::cache {

struct DamagedFile {
  Kind kind;
  std::string name, complaint;  ///< the complaint ends a sentence
};

struct LocalTotals {
  uint64_t entries = 0, artifacts = 0, bytes = 0;
};

/// What gc() removed.
struct Collected {
  uint64_t abandoned = 0;  ///< temporary files of writers that died
  uint64_t unneeded = 0, evicted = 0;
  uint64_t bytes = 0;  ///< of the unneeded and the evicted
};

/// Every operation finds the folder anew, so it may come and go; it throws Error when others may write to the
/// folder, or when it belongs to neither the user nor root.
class LocalStore : public Store {
 public:
  /// The folder may be absent: the first put makes it. The files in it have at most `max_bytes` together, and
  /// little more for a while when several processes write.
  LocalStore(const std::filesystem::path& directory, std::string signing_key, uint64_t max_bytes);

  /// Also from a folder that may only be read. A damaged file is removed where that is allowed.
  Fetched get(Kind kind, const std::string& name) override;
  /// Leaves an artifact that is there and whole as it is; an entry is replaced. The least recently used files
  /// go when there are too many bytes.
  void put(Kind kind, const std::string& name, const std::string& payload) override;

  /// The same, but neither removes nor counts as a use.
  Fetched look(Kind kind, const std::string& name) const;

  std::vector<StoredFile> list() const;
  LocalTotals stats() const;
  /// Whether it was there.
  bool remove(Kind kind, const std::string& name);
  /// Removes every file that was put, and says how many; nothing that others put into the folder.
  uint64_t clear();
  /// Opens every file, and neither removes nor counts as a use.
  std::vector<DamagedFile> verify() const;
  /// Removes what dead writers left behind, then what `is_needed` (when given) does not want and nobody used
  /// within the last hour (an artifact is put before the entry that names it), then the least recently used
  /// down to `max_bytes`.
  Collected gc(const std::function<bool(const StoredFile&)>& is_needed = {});

 private:
  Fetched read(const Descriptor& file, Kind kind, const std::string& name) const;
  bool has_whole(const Folder& place, Kind kind, const std::string& name) const;
  void make_room(const Folder& root, uint64_t added);

  const std::filesystem::path directory_;
  const std::string signing_key_;
  const uint64_t max_bytes_;

  std::mutex mutex_;                 ///< of what follows
  std::optional<uint64_t> counted_;  ///< bytes in the folder when it was last looked through
  uint64_t added_ = 0;               ///< bytes that this process has put since
};

}  // namespace tandem::cache
