#include "cache/session.h"

#include <tandem/error.h>

#include <set>

#include "base/counters.h"
#include "base/events.h"
#include "base/log.h"
#include "cache/settings.h"

namespace tandem {
namespace {

std::string described(const cache::Components& components) {
  std::string text;
  for (const cache::Component& component : components)
    text += "\n  " + component.name + ": " + component.hash;
  return text;
}

/// A reason is news once, however many calls it keeps out of the cache.
void warn_once(const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string>& said = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said.insert(message).second) warn(message);
}

std::string subject(const std::string& name) { return name.empty() ? "a function" : name; }

size_t bytes_of(const Remembered::Artifacts& artifacts) {
  size_t bytes = 0;
  for (const auto& [name, payload] : artifacts) bytes += payload.size();
  return bytes;
}

/// Variants and orders that another process added to the same entry.
void add_missing(cache::StoredOrder& ours, const cache::StoredOrder& theirs) {
  if (ours.joint.bytes != theirs.joint.bytes || ours.halves.saved != theirs.halves.saved) return;
  auto find = [](auto& list, const BackwardVariant& variant) {
    return std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.variant == variant; });
  };
  for (const cache::StoredBackward& backward : theirs.backwards) {
    const bool is_known = find(ours.backwards, backward.variant) != ours.backwards.end();
    if (is_known || ours.backwards.size() >= most_backwards) continue;
    ours.backwards.push_back(backward);
    ours.backwards.back().graph = backward.graph_in(theirs.halves);
  }
  for (const cache::StoredOrder& order : theirs.above) {
    const auto own = find(ours.above, order.variant);
    if (own != ours.above.end())
      add_missing(*own, order);
    else if (ours.above.size() < most_orders_above)
      ours.above.push_back(order);
  }
}

}  // namespace

Remembered::Remembered(const Options& options, bool only_key)
    : name_(options.name), strict_(options.cache.strict) {
  if (only_key) return;
  try {
    const CacheOptions settled = cache::settle(options.cache);
    if (settled.enabled && (settled.local || !settled.remote.empty())) levels_ = cache::levels_for(settled);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void Remembered::identify(const Traced& traced, const Plan& plan, const Options& options) {
  try {
    fingerprint_ = tandem::fingerprint(traced, plan, options);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void Remembered::look_up() {
  try {
    if (!saves()) return;
    if (!fingerprint_.obstacle.empty()) return bypass(fingerprint_.obstacle);
    if (logs_details("cache"))
      log_details("cache", name_ + " key " + fingerprint_.key + described(fingerprint_.components));
    state_ = "miss";
    find();
  } catch (const CacheError&) {
    throw;
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void Remembered::tell(const char* event, const nlohmann::ordered_json& more) const {
  if (!writes_events()) return;
  nlohmann::ordered_json fields = {
      {"name", name_},
      {"key",
       fingerprint_.key.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(fingerprint_.key)}};
  fields.update(more);
  write_event(event, fields);
}

void Remembered::find() {
  std::string damage;
  if (levels_->asks_local()) asked_.push_back("local");
  found_ = levels_->find_local(fingerprint_.key, damage);
  if (!damage.empty()) tell("damaged", {{"reason", damage}});
  if (strict_ && !damage.empty())
    throw CacheError("the cache entry " + fingerprint_.key + " " + damage +
                     "; it was removed, so that the next compile makes it anew");
  if (!found_) find_remote();
}

void Remembered::find_remote() {
  if (levels_->asks_remote()) asked_.push_back("remote");
  found_ = levels_->find_remote(fingerprint_.key);
}

void Remembered::count_hit() {
  const cache::StoredEntry& entry = found_->entry;
  const double saved = entry.trace_seconds + entry.forward_seconds + entry.backward_seconds;
  state_ = "hit";
  hit_ = Hit{found_->remote, found_->encoded.size(), bytes_of(*found_->artifacts)};
  count("cache_hit");
  count("cache_time_saved_us", uint64_t(std::max(0.0, saved) * 1e6));
  if (logs("cache"))
    log("cache", name_ + " hit " + fingerprint_.key + (found_->remote ? " (remote)" : "") + ", saves " +
                     std::to_string(saved * 1e3) + " ms");
  if (found_->remote) levels_->adopt(fingerprint_.key, *found_);
  found_.reset();
}

void Remembered::count_miss() {
  if (state_ != "miss") return;
  count("cache_miss");
  if (logs("cache")) log("cache", name_ + " miss " + fingerprint_.key);
}

void Remembered::refuse_unfit(const std::string& why) {
  const bool remote = found_->remote;
  found_.reset();
  say_unfit(why, remote);
  if (!remote) find_remote();
}

void Remembered::note_unfit(const std::string& why) {
  say_unfit(why, (found_ && found_->remote) || (hit_ && hit_->remote));
}

void Remembered::say_unfit(const std::string& why, bool remote) {
  replaces_ = true;
  count("cache_unfit");
  tell("unfit", {{"level", remote ? "remote" : "local"}, {"reason", why}});
  if (strict_ && !remote) throw CacheError("the cache entry " + fingerprint_.key + " cannot be used: " + why);
  log("cache", name_ + (remote ? " remote entry " : " entry ") + fingerprint_.key + " is unfit: " + why);
}

void Remembered::give_up(const std::string& reason) {
  bypassed_ = true;
  hit_.reset();
  state_ = "bypass";
  reason_ = reason;
  count("cache_bypass");
  tell("bypass", {{"reason", reason}, {"unexpected", unexpected_}});
  if (strict_) throw CacheError(subject(name_) + " cannot be cached: " + reason);
}

void Remembered::bypass(const std::string& reason) {
  if (!saves()) return;
  give_up(reason);
  warn_once(subject(name_) + " is not cached: " + reason);
}

void Remembered::bypass_silently(const std::string& reason) {
  if (!saves()) return;
  give_up(reason);
  log("cache", name_ + " bypass: " + reason_);
}

void Remembered::fail(const std::string& what) {
  unexpected_ = true;
  give_up("unexpected: " + what);
  warn_once("the cache cannot be used, and " + subject(name_) + " is compiled without it: " + what);
}

void Remembered::save(cache::StoredEntry entry, const Artifacts& artifacts) {
  if (!saves()) return;
  try {
    if (!replaces_)
      if (auto theirs = levels_->peek(fingerprint_.key)) add_missing(entry.first, theirs->first);
    const std::string bytes = cache::encode(entry);
    // What could not be read back must not be saved.
    (void)cache::decode(bytes);
    levels_->save(fingerprint_.key, bytes, artifacts);
    replaces_ = false;
    count("cache_saved");
    tell("saved", {{"entry_bytes", bytes.size()}, {"artifact_bytes", bytes_of(artifacts)}});
    if (logs("cache")) log("cache", name_ + " saved " + fingerprint_.key);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

}  // namespace tandem
