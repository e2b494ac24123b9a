/// The folder and the remote store behind it, asked one after the other.
#pragma once

#include <tandem/options.h>

#include <map>
#include <memory>
#include <set>

#include "cache/bundle.h"
#include "cache/local_store.h"
#include "cache/record.h"
#include "cache/remote_store.h"

namespace tandem::cache {

/// An entry as a call needs it, and the artifacts that it names, as far as they are there.
struct Found {
  StoredEntry entry;
  std::string encoded;  ///< the entry's bytes
  std::shared_ptr<const Artifacts> artifacts;
  bool remote = false;  ///< it came from another machine
};

class Levels {
 public:
  /// Throws Error for a folder that is not safe. A remote address that is none costs the remote store, with a
  /// warning, or everything where there is no folder. `options` are settled.
  explicit Levels(const CacheOptions& options);

  /// A damaged entry is as good as none: warned of, counted and removed; `damage` then says what is wrong
  /// with it, as the end of a sentence.
  std::optional<Found> find_local(const std::string& key, std::string& damage);
  /// Only what is there with all that it names. What is wrong there is counted.
  std::optional<Found> find_remote(const std::string& key);
  /// Puts what was found remotely into the folder, quietly where the folder does not take it.
  void adopt(const std::string& key, const Found& found);
  /// All that the folder has under the key, quietly.
  std::optional<StoredEntry> peek(const std::string& key);
  /// Artifacts first, so that whoever finds the entry finds them. Throws Error when the folder does not take
  /// them.
  void save(const std::string& key, const std::string& entry, const Artifacts& artifacts);
  /// What the process read or wrote, by kind and name, for a bundle.
  std::vector<std::pair<Kind, std::string>> used() const;
  /// The entries among them with all that they name, as the folder has them now.
  std::vector<BundleItem> used_items();
  /// Whether a look-up asks the folder, and the remote store, which is left alone for a while after trouble.
  bool asks_local() const { return local_ != nullptr; }
  bool asks_remote() { return remote_ && !remote_->pausing(); }
  bool flush(std::chrono::milliseconds time) { return !remote_ || remote_->flush(time); }

 private:
  Artifacts local_artifacts(const StoredEntry& entry);
  void keep(const std::string& key, const std::string& entry, const Artifacts& artifacts);
  void note(Kind kind, const std::string& name);

  std::unique_ptr<LocalStore> local_;
  std::unique_ptr<RemoteStore> remote_;
  mutable std::mutex mutex_;
  std::set<std::pair<Kind, std::string>> used_;
};

/// Of the remote stores that are made from now on.
RemoteLimits& remote_limits();

/// One for each configuration in a process.
std::shared_ptr<Levels> levels_for(const CacheOptions& settled);
/// Those that were made.
std::vector<std::shared_ptr<Levels>> all_levels();

}  // namespace tandem::cache
