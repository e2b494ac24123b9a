#include <tandem/cache.h>

#include "cache/bundle.h"
#include "cache/levels.h"
#include "cache/settings.h"

namespace tandem::cache {
namespace {

/// Whoever looks after the folder may do so while the cache is off.
LocalStore folder_of(const CacheOptions& settled) {
  if (!settled.local)
    throw Error(
        "CacheOptions::local is false, so there is no folder; leave it true, or name none of the folder's "
        "functions");
  return LocalStore(settled.directory, settled.signing_key, settled.max_bytes);
}

/// What a store would find out at its next use is said here, before anything is put.
void check_contents(const BundleItem& item, const std::filesystem::path& path) {
  const bool fits = item.kind == Kind::Artifact ? sha256(item.payload) == item.name
                                                : key_of(decode(item.payload).components) == item.name;
  if (!fits)
    throw Error("the bundle " + path.string() + " holds something else under the name " + item.name +
                " than what has that name; export it anew");
}

void add_items(std::map<std::pair<Kind, std::string>, BundleItem>& items, Levels& levels) {
  for (BundleItem& item : levels.used_items()) {
    const std::pair place(item.kind, item.name);
    items.insert_or_assign(place, std::move(item));
  }
}

void write_items(const std::filesystem::path& path, std::map<std::pair<Kind, std::string>, BundleItem> items,
                 const std::string& signing_key) {
  std::vector<BundleItem> list;
  for (auto& [place, item] : items) list.push_back(std::move(item));
  write_bundle(path, list, signing_key);
}

}  // namespace

void clear(const CacheOptions& options) { folder_of(with_defaults(options)).clear(); }

Stats stats(const CacheOptions& options) {
  Stats stats;
  const CacheOptions settled = with_defaults(options);
  if (settled.local) {
    const LocalTotals totals = folder_of(settled).stats();
    stats.directory = settled.directory;
    stats.entries = totals.entries;
    stats.artifacts = totals.artifacts;
    stats.bytes = totals.bytes;
  }
  std::map<std::string, uint64_t> counted = counters();
  stats.hits = counted["cache_hit"];
  stats.misses = counted["cache_miss"];
  stats.bypasses = counted["cache_bypass"];
  stats.unfit = counted["cache_unfit"];
  stats.corrupt = counted["cache_corrupt"];
  stats.saved = counted["cache_saved"];
  stats.seconds_saved = double(counted["cache_time_saved_us"]) / 1e6;
  return stats;
}

void export_bundle(const std::filesystem::path& path) {
  std::map<std::pair<Kind, std::string>, BundleItem> items;
  for (const auto& levels : all_levels()) add_items(items, *levels);
  write_items(path, std::move(items), with_defaults({.local = false}).signing_key);
}

void export_bundle(const std::filesystem::path& path, const CacheOptions& options) {
  const CacheOptions settled = with_defaults(options);
  std::map<std::pair<Kind, std::string>, BundleItem> items;
  add_items(items, *levels_for(settled));
  write_items(path, std::move(items), settled.signing_key);
}

void import_bundle(const std::filesystem::path& path, const CacheOptions& options) {
  const CacheOptions settled = with_defaults(options);
  LocalStore folder = folder_of(settled);
  const std::vector<BundleItem> items = read_bundle(path, settled.signing_key);
  for (const BundleItem& item : items) check_contents(item, path);
  // Whoever finds an entry is to find what it names.
  for (const Kind kind : {Kind::Artifact, Kind::Entry})
    for (const BundleItem& item : items)
      if (item.kind == kind) folder.put(kind, item.name, item.payload);
}

}  // namespace tandem::cache
