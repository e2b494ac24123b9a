/// A thread that talks to the remote cache, so that nobody else has to wait for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "cache/redis_connection.h"

namespace tandem::cache {

/// How long and how much; the defaults are what users get.
struct RemoteLimits {
  using Clock = RedisConnection::Clock;

  std::chrono::milliseconds wait{50};        ///< the longest until a lookup's answers begin
  std::chrono::milliseconds transfer{2000};  ///< from there on: code may be megabytes
  /// the longest that one value is being written, in the background
  std::chrono::milliseconds write{5000};
  /// the longest that the end of the process is held up by values not written yet
  std::chrono::milliseconds farewell{1000};
  std::chrono::milliseconds first_pause{1000}, longest_pause{60000};
  size_t queue_count = 1024, queue_bytes = size_t(256) << 20;
  /// payloads beyond this are neither written nor read
  size_t largest = size_t(64) << 20;
  std::function<Clock::time_point()> now = &Clock::now;  ///< what pauses are measured with
};

/// Does jobs in order on a thread and a connection of its own. After a job that failed there is a pause,
/// twice as long each time, in which jobs are thrown away. Thread-safe. The thread keeps its line alive,
/// since it may be stuck in a name server when the store goes.
class RemoteLine : public std::enable_shared_from_this<RemoteLine> {
 public:
  struct Job {
    /// throws Error, the end of a sentence about the server, when it failed
    std::function<void(RedisConnection&)> run;
    /// what it failed with, or nothing; not called for a job that was thrown away
    std::function<void(const std::string& why)> done;
    size_t bytes = 0;  ///< what it holds in memory
  };

  /// Lines to the same server share `warned`: the first failure is a warning, the others are only logged.
  RemoteLine(const RemoteAddress& address, const RemoteLimits& limits,
             std::shared_ptr<std::atomic<bool>> warned);

  /// False in a pause. When the queue is full, the oldest jobs go.
  bool post(Job job);
  /// Begins a pause, unless there is one.
  void fail(const std::string& why);
  bool pausing();
  /// Whether every job came to its end in that time.
  bool flush(std::chrono::milliseconds time);
  /// Waits as `flush` does, then lets the thread go, stuck or not. Nothing may be posted afterwards.
  void close(std::chrono::milliseconds time);
  /// Jobs thrown away after they were posted.
  uint64_t dropped();

 private:
  bool start();
  void work();
  void do_job(Job job, std::unique_lock<std::mutex>& lock);
  void drop_oldest();
  bool in_pause() const { return failures_ > 0 && limits_.now() < pause_end_; }
  void begin_pause(const std::string& why);

  const std::string server_;
  const RemoteLimits limits_;
  const std::shared_ptr<std::atomic<bool>> warned_;
  RedisConnection connection_;  // the thread's alone

  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  std::deque<Job> queue_;
  size_t queued_bytes_ = 0;
  uint64_t dropped_ = 0;
  bool busy_ = false, closing_ = false, ended_ = false;
  int failures_ = 0;
  RemoteLimits::Clock::time_point pause_end_;
};

}  // namespace tandem::cache
