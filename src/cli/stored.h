/// What the cache folder holds, as people name it.
#pragma once

#include <memory>

#include "cache/levels.h"

namespace tandem::cli {

/// The folder of the default cache, or another one; the signing key is the environment's.
CacheOptions cache_at(const std::filesystem::path& directory);
cache::LocalStore open_store(const CacheOptions& settled);

/// The entry and the bytes of its file; throws Error, the end of a sentence about the entry, when it cannot
/// be read or is that of another key.
struct ReadEntry {
  cache::StoredEntry entry;
  std::string payload;
};
ReadEntry read_entry(const cache::LocalStore& store, const std::string& key);

/// The key of an entry in the folder that begins so; throws Error when none or several do.
std::string complete_key(const cache::LocalStore& store, const std::string& beginning);

/// Most recently used first.
std::vector<cache::StoredFile> list_entries(const cache::LocalStore& store);

/// What a hit saves.
inline double seconds_saved(const cache::StoredEntry& entry) {
  return entry.trace_seconds + entry.forward_seconds + entry.backward_seconds;
}

}  // namespace tandem::cli
