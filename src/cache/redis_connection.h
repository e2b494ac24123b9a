/// A conversation with a Redis server that ends in time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "cache/remote_url.h"

namespace tandem::cache {

struct RedisReply {
  enum class Kind : uint8_t { Nothing, Bytes, Done, Refused } kind = Kind::Nothing;
  /// Bytes: the value; Refused: the server's code, such as OOM or WRONGTYPE, and no more, since servers
  /// repeat arguments
  std::string text;
};

/// Connects, gives the password and chooses the database when it is first asked, and again after any trouble.
/// For one thread at a time, which must have blocked SIGPIPE: the client library writes to sockets without a
/// thought for it.
class RedisConnection {
 public:
  using Clock = std::chrono::steady_clock;
  using Command = std::vector<std::string>;

  /// Throws Error when Tandem was built without hiredis. A value longer than `largest` is not read to its
  /// end.
  RedisConnection(RemoteAddress address, size_t largest);
  ~RedisConnection();
  RedisConnection(RedisConnection&&) noexcept;

  /// Called when the first bytes of the replies are there; says by when the rest has to be.
  using Begun = std::function<Clock::time_point()>;

  /// One reply for each command, sent together. Throws Error, whose text is the end of a sentence ("refused
  /// the password"), when they are not all there by then, or by the time that `begun` says where they began
  /// by then;
  /// resolving the host's name is the one step that may take longer.
  std::vector<RedisReply> ask(const std::vector<Command>& commands, Clock::time_point until,
                              const Begun& begun = {});

 private:
  struct Context;

  void connect(Clock::time_point until);
  std::vector<RedisReply> exchange(const std::vector<Command>& commands, Clock::time_point until,
                                   Begun begun = {});

  RemoteAddress address_;
  size_t largest_;
  std::unique_ptr<Context> context_;
};

}  // namespace tandem::cache
