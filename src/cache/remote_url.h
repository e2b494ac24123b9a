/// Where a remote cache is, as its URL says it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::cache {

struct RemoteAddress {
  std::string host;
  uint16_t port = 6379;
  /// decoded; an empty user is Redis's default one, an empty password means that none is sent
  std::string user, password;
  uint32_t database = 0;
};

/// Of "redis://[user:password@]host[:port][/database]"; throws Error that says which part is wrong and quotes
/// none of it.
RemoteAddress parse_remote_url(std::string_view url);

/// "host:port", for messages: without user and password.
std::string shown(const RemoteAddress& address);

}  // namespace tandem::cache
