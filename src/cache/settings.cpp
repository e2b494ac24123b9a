#include "cache/settings.h"

#include <tandem/error.h>

#include <cstdlib>

#include "base/log.h"

namespace tandem::cache {
namespace {

/// An empty variable says as little as one that is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::filesystem::path default_directory() {
  if (std::string own = variable("TANDEM_CACHE_DIR"); !own.empty()) return own;
  if (std::string caches = variable("XDG_CACHE_HOME"); !caches.empty())
    return std::filesystem::path(caches) / "tandem";
  if (std::string home = variable("HOME"); !home.empty())
    return std::filesystem::path(home) / ".cache" / "tandem";
  throw Error(
      "there is no place for the cache: neither TANDEM_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set; set "
      "CacheOptions::directory, or TANDEM_CACHE=off");
}

bool is_switched_off() {
  const std::string word = variable("TANDEM_CACHE");
  for (const char* off : {"off", "0", "false", "no"})
    if (word == off) return true;
  for (const char* on : {"", "on", "1", "true", "yes"})
    if (word == on) return false;
  static const bool told = (warn("TANDEM_CACHE=" + word +
                                 " means nothing, and the cache is used; off, 0, false or no switch it off"),
                            true);
  static_cast<void>(told);
  return false;
}

}  // namespace

CacheOptions settle(CacheOptions options) {
  if (is_switched_off()) options.enabled = false;
  return options.enabled ? with_defaults(std::move(options)) : options;
}

CacheOptions with_defaults(CacheOptions options) {
  if (options.remote.empty()) options.remote = variable("TANDEM_REMOTE_CACHE");
  if (options.remote == "off") options.remote.clear();
  if (options.signing_key.empty()) options.signing_key = variable("TANDEM_CACHE_KEY");
  if (options.local && options.directory.empty()) options.directory = default_directory();
  return options;
}

}  // namespace tandem::cache
