/// What a user's cache options come to, with the environment's say.
#pragma once

#include <tandem/options.h>

namespace tandem::cache {

/// The options with defaults filled in from the environment: TANDEM_CACHE=off beats everything;
/// TANDEM_CACHE_DIR, XDG_CACHE_HOME and HOME say where the folder is, TANDEM_REMOTE_CACHE and
/// TANDEM_CACHE_KEY what is not given; a remote that is "off" becomes none. To be asked once: what it returns
/// has no "off" any more. Throws Error when there is no place for the folder.
CacheOptions settle(CacheOptions options);
/// The same, whether the cache is on or off: for those who look after what is in it.
CacheOptions with_defaults(CacheOptions options);

}  // namespace tandem::cache
