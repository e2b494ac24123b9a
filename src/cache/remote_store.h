/// Sealed bytes on a Redis server that many machines share; trouble with it costs a lookup at most
/// RemoteLimits::wait, and RemoteLimits::transfer where it began to answer, and throws nothing.
#pragma once

#include <atomic>

#include "cache/remote_line.h"
#include "cache/store.h"

namespace tandem::cache {

/// How long one lookup may still wait for the remote cache, over all of its calls.
struct Patience {
  std::chrono::steady_clock::duration left;      ///< for answers to begin
  std::chrono::steady_clock::duration transfer;  ///< for those that began
};

struct RemoteStats {
  /// values that were there and whole, and values that were not there
  uint64_t hits = 0, misses = 0;
  /// calls that failed or came too late, values that were damaged, writes that failed
  uint64_t errors = 0;
  uint64_t skipped = 0;  ///< calls answered without asking, in a pause after a failure
  /// values written; values never written, for a pause, a full queue or their size
  uint64_t stored = 0, dropped = 0;
};

/// Values lie under "<namespace>:<format version>:<entry|artifact>:<name>". What happens is also counted as
/// `cache_remote_hit` and `cache_remote_miss`, of entries alone since a lookup is for one entry, and as
/// `cache_remote_error`.
class RemoteStore : public Store {
 public:
  /// Connects to nothing yet. Throws Error for a URL that is none, and when Tandem was built without hiredis.
  RemoteStore(const std::string& url, std::string name_space, std::string signing_key,
              RemoteLimits limits = {});
  /// Gives values that are still to be written RemoteLimits::farewell.
  ~RemoteStore() override;

  /// Absent also for every kind of trouble; Damaged when what is there is not ours.
  Fetched get(Kind kind, const std::string& name) override;

  struct Wanted {
    Kind kind;
    std::string name;
  };
  Patience patience() const { return {limits_.wait, limits_.transfer}; }
  /// All in one go; takes the time that it waited off the patience.
  std::vector<Fetched> get_many(const std::vector<Wanted>& wanted, Patience& patience);

  /// Only puts it into the queue of what is written in the background.
  void put(Kind kind, const std::string& name, const std::string& payload) override;
  /// Whether everything was written or given up in that time.
  bool flush(std::chrono::milliseconds time);
  RemoteStats stats();
  /// Whether it is left alone just now, after trouble with reading.
  bool pausing();

 private:
  struct Lines;
  struct Tally;

  Lines& lines();
  std::string key_of(Kind kind, const std::string& name) const;
  std::vector<RedisReply> ask(const std::vector<Wanted>& wanted, Patience& patience);
  Fetched read(const Wanted& wanted, const RedisReply& reply);

  const RemoteAddress address_;
  const std::string namespace_, signing_key_;
  const RemoteLimits limits_;
  const std::shared_ptr<Tally> tally_;
  std::atomic<Lines*> lines_;
};

}  // namespace tandem::cache
