#include "cache/levels.h"

#include <tandem/error.h>

#include "base/counters.h"
#include "base/log.h"

namespace tandem::cache {
namespace {

/// What an entry in a store turns out to be: itself, as far as `decode` goes, or a complaint.
std::variant<StoredEntry, std::string> read_entry(const Fetched& fetched, const std::string& key,
                                                  StoredEntry (*decode)(std::string_view)) {
  if (fetched.state == Fetched::State::Damaged) return fetched.complaint;
  try {
    StoredEntry entry = decode(fetched.payload);
    if (key_of(entry.components) != key) return std::string("is an entry of another key");
    return entry;
  } catch (const Error& error) {
    return std::string("does not hold an entry: ") + error.what();
  }
}

}  // namespace

Levels::Levels(const CacheOptions& options) {
  if (options.local)
    local_ = std::make_unique<LocalStore>(options.directory, options.signing_key, options.max_bytes);
  if (options.remote.empty()) return;
  try {
    remote_ = std::make_unique<RemoteStore>(options.remote, options.remote_namespace, options.signing_key,
                                            remote_limits());
  } catch (const Error& error) {
    if (!local_) throw;
    warn(std::string("the remote cache is not used: ") + error.what());
  }
}

std::optional<Found> Levels::find_local(const std::string& key, std::string& damage) {
  if (!local_) return std::nullopt;
  Fetched fetched = local_->get(Kind::Entry, key);
  if (fetched.state == Fetched::State::Absent) return std::nullopt;
  auto read = read_entry(fetched, key, decode_for_call);
  if (auto* complaint = std::get_if<std::string>(&read)) {
    count("cache_corrupt");
    warn("the cache entry " + key + " " + *complaint + "; it is compiled again");
    damage = *complaint;
    if (fetched.state == Fetched::State::Found) local_->remove(Kind::Entry, key);
    return std::nullopt;
  }
  Found found{std::move(std::get<StoredEntry>(read)), std::move(fetched.payload), {}, false};
  found.artifacts = std::make_shared<const Artifacts>(local_artifacts(found.entry));
  note(Kind::Entry, key);
  return found;
}

Artifacts Levels::local_artifacts(const StoredEntry& entry) {
  Artifacts artifacts;
  for (const std::string& name : artifacts_of(entry.first)) {
    Fetched part = local_->get(Kind::Artifact, name);
    if (part.state == Fetched::State::Damaged) {
      count("cache_corrupt");
      warn("the cached code " + name + " " + part.complaint + "; it is compiled again");
    }
    if (part.state != Fetched::State::Found) continue;
    artifacts.emplace(name, std::move(part.payload));
    note(Kind::Artifact, name);
  }
  return artifacts;
}

/// Both answers together keep within the times of one lookup.
std::optional<Found> Levels::find_remote(const std::string& key) {
  if (!remote_) return std::nullopt;
  Patience patience = remote_->patience();
  Fetched fetched = std::move(remote_->get_many({{Kind::Entry, key}}, patience)[0]);
  if (fetched.state != Fetched::State::Found) return std::nullopt;
  auto read = read_entry(fetched, key, decode_for_call);
  if (std::holds_alternative<std::string>(read)) {
    count("cache_remote_error");
    return std::nullopt;
  }
  Found found{std::move(std::get<StoredEntry>(read)), std::move(fetched.payload), {}, true};
  std::vector<RemoteStore::Wanted> wanted;
  for (const std::string& name : artifacts_of(found.entry.first)) wanted.push_back({Kind::Artifact, name});
  std::vector<Fetched> parts = remote_->get_many(wanted, patience);
  Artifacts artifacts;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].state != Fetched::State::Found) return std::nullopt;
    artifacts.emplace(wanted[i].name, std::move(parts[i].payload));
  }
  found.artifacts = std::make_shared<const Artifacts>(std::move(artifacts));
  return found;
}

void Levels::adopt(const std::string& key, const Found& found) {
  try {
    keep(key, found.encoded, *found.artifacts);
  } catch (const Error& error) {
    log("cache", std::string("a remote entry is not kept in the folder: ") + error.what());
  }
}

std::optional<StoredEntry> Levels::peek(const std::string& key) {
  if (!local_) return std::nullopt;
  const Fetched fetched = local_->get(Kind::Entry, key);
  if (fetched.state != Fetched::State::Found) return std::nullopt;
  auto read = read_entry(fetched, key, decode);
  return std::holds_alternative<StoredEntry>(read) ? std::optional(std::move(std::get<StoredEntry>(read)))
                                                   : std::nullopt;
}

void Levels::save(const std::string& key, const std::string& entry, const Artifacts& artifacts) {
  keep(key, entry, artifacts);
  if (!remote_) return;
  for (const auto& [name, payload] : artifacts) remote_->put(Kind::Artifact, name, payload);
  remote_->put(Kind::Entry, key, entry);
}

void Levels::keep(const std::string& key, const std::string& entry, const Artifacts& artifacts) {
  if (!local_) return;
  for (const auto& [name, payload] : artifacts) {
    local_->put(Kind::Artifact, name, payload);
    note(Kind::Artifact, name);
  }
  local_->put(Kind::Entry, key, entry);
  note(Kind::Entry, key);
}

void Levels::note(Kind kind, const std::string& name) {
  std::lock_guard lock(mutex_);
  used_.emplace(kind, name);
}

std::vector<std::pair<Kind, std::string>> Levels::used() const {
  std::lock_guard lock(mutex_);
  return {used_.begin(), used_.end()};
}

std::vector<BundleItem> Levels::used_items() {
  std::vector<BundleItem> items;
  auto add = [&](Kind kind, const std::string& name) {
    Fetched fetched = local_->get(kind, name);
    if (fetched.state == Fetched::State::Found) items.push_back({kind, name, std::move(fetched.payload)});
  };
  for (const auto& [kind, name] : used()) {
    const std::optional<StoredEntry> entry = kind == Kind::Entry ? peek(name) : std::nullopt;
    if (!entry) continue;
    add(kind, name);
    for (const std::string& artifact : artifacts_of(entry->first)) add(Kind::Artifact, artifact);
  }
  return items;
}

namespace {

struct Made {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Levels>> levels;
};

Made& made() {
  // The process's end gives values that are on their way to the remote store a moment.
  static Made all;
  return all;
}

}  // namespace

RemoteLimits& remote_limits() {
  static RemoteLimits limits;
  return limits;
}

std::shared_ptr<Levels> levels_for(const CacheOptions& settled) {
  const std::string key = std::to_string(settled.local) + '\0' + settled.directory.string() + '\0' +
                          settled.remote + '\0' + settled.remote_namespace + '\0' + settled.signing_key +
                          '\0' + std::to_string(settled.max_bytes);
  Made& all = made();
  std::lock_guard lock(all.mutex);
  auto found = all.levels.find(key);
  if (found == all.levels.end()) found = all.levels.emplace(key, std::make_shared<Levels>(settled)).first;
  return found->second;
}

std::vector<std::shared_ptr<Levels>> all_levels() {
  Made& all = made();
  std::lock_guard lock(all.mutex);
  std::vector<std::shared_ptr<Levels>> list;
  for (const auto& [key, levels] : all.levels) list.push_back(levels);
  return list;
}

}  // namespace tandem::cache
