#include "cache/settings.h"

#include <tandem/error.h>

#include <cstdlib>

namespace tandem::cache {
namespace {

/// An empty variable says as little as one that is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::filesystem::path default_directory() {
  if (std::string own = variable("TANDEM_CACHE_DIR"); !own.empty()) return own;
  if (std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) return std::filesystem::path(caches) / "tandem";
  if (std::string home = variable("HOME"); !home.empty()) return std::filesystem::path(home) / ".cache" / "tandem";
  throw Error("there is no place for the cache: neither TANDEM_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set; set CacheOptions::directory, or TANDEM_CACHE=off");
}

}  // namespace

CacheOptions settle(CacheOptions options) {
  if (variable("TANDEM_CACHE") == "off") options.enabled = false;
  return options.enabled ? with_defaults(std::move(options)) : options;
}

CacheOptions with_defaults(CacheOptions options) {
  if (options.remote.empty()) options.remote = variable("TANDEM_REMOTE_CACHE");
  if (options.signing_key.empty()) options.signing_key = variable("TANDEM_CACHE_KEY");
  if (options.local && options.directory.empty()) options.directory = default_directory();
  return options;
}

}  // namespace tandem::cache
