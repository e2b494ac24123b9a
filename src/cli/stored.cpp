#include "stored.h"

#include <tandem/error.h>

#include <algorithm>

#include "cache/settings.h"

namespace tandem::cli {

CacheOptions cache_at(const std::filesystem::path& directory) {
  return cache::with_defaults({.directory = directory});
}

cache::LocalStore open_store(const CacheOptions& settled) {
  return cache::LocalStore(settled.directory, settled.signing_key, settled.max_bytes);
}

ReadEntry read_entry(const cache::LocalStore& store, const std::string& key) {
  cache::Fetched fetched = store.look(cache::Kind::Entry, key);
  if (fetched.state == cache::Fetched::State::Absent) throw Error("is not there");
  if (fetched.state == cache::Fetched::State::Damaged) throw Error(fetched.complaint);
  cache::StoredEntry entry = cache::decode(fetched.payload);
  if (cache::key_of(entry.components) != key) throw Error("is an entry of another key");
  return {std::move(entry), std::move(fetched.payload)};
}

std::vector<cache::StoredFile> list_entries(const cache::LocalStore& store) {
  std::vector<cache::StoredFile> files = store.list();
  std::erase_if(files, [](const cache::StoredFile& file) { return file.kind != cache::Kind::Entry; });
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.last_use > b.last_use; });
  return files;
}

std::string complete_key(const cache::LocalStore& store, const std::string& beginning) {
  std::vector<std::string> keys;
  for (const cache::StoredFile& file : list_entries(store))
    if (file.name.starts_with(beginning)) keys.push_back(file.name);
  if (keys.size() == 1) return keys[0];
  if (keys.empty())
    throw Error("no entry of the cache has a key that begins with \"" + beginning +
                "\"; `tandem cache ls` lists them");
  throw Error(std::to_string(keys.size()) + " entries of the cache have keys that begin with \"" + beginning +
              "\", " + keys[0] + " and " + keys[1] + " among them; give more of its digits");
}

}  // namespace tandem::cli
