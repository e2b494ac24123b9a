#include "cache/remote_line.h"

#include <tandem/error.h>

#include <algorithm>
#include <csignal>
#include <system_error>

#include "base/log.h"

namespace tandem::cache {

namespace {

/// While it lives, threads are started with every signal blocked: the host program's handlers run on its own
/// threads, and a lost connection is an error in place of SIGPIPE.
struct SignalsBlocked {
  sigset_t before;

  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
};

}  // namespace

RemoteLine::RemoteLine(const RemoteAddress& address, const RemoteLimits& limits,
                       std::shared_ptr<std::atomic<bool>> warned)
    : server_(shown(address)),
      limits_(limits),
      warned_(std::move(warned)),
      connection_(address, limits.largest) {}

bool RemoteLine::post(Job job) {
  std::lock_guard lock(mutex_);
  if (in_pause()) return false;
  if (!thread_.joinable() && !start()) return false;
  while (!queue_.empty() &&
         (queue_.size() >= limits_.queue_count || queued_bytes_ + job.bytes > limits_.queue_bytes))
    drop_oldest();
  queued_bytes_ += job.bytes;
  queue_.push_back(std::move(job));
  changed_.notify_all();
  return true;
}

bool RemoteLine::start() {
  try {
    SignalsBlocked here;
    thread_ = std::thread([self = shared_from_this()] { self->work(); });
    return true;
  } catch (const std::system_error& error) {
    begin_pause("cannot be asked without a thread, which cannot be had (" + std::string(error.what()) + ")");
    return false;
  }
}

void RemoteLine::drop_oldest() {
  queued_bytes_ -= queue_.front().bytes;
  queue_.pop_front();
  ++dropped_;
}

void RemoteLine::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !queue_.empty() || closing_; });
    if (queue_.empty()) break;
    if (in_pause()) {
      drop_oldest();
    } else {
      Job job = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= job.bytes;
      do_job(std::move(job), lock);
    }
    changed_.notify_all();
  }
  ended_ = true;
  changed_.notify_all();
}

void RemoteLine::do_job(Job job, std::unique_lock<std::mutex>& lock) {
  busy_ = true;
  lock.unlock();
  std::string why;
  try {
    job.run(connection_);
  } catch (const std::exception& error) {
    why = error.what();
  }
  lock.lock();
  // Before anybody hears of the failure, so that what they try next falls into the pause.
  if (!why.empty())
    begin_pause(why);
  else if (!in_pause())
    failures_ = 0;
  lock.unlock();
  job.done(why);
  job = {};
  lock.lock();
  busy_ = false;
}

void RemoteLine::fail(const std::string& why) {
  std::lock_guard lock(mutex_);
  begin_pause(why);
}

void RemoteLine::begin_pause(const std::string& why) {
  if (in_pause()) return;
  const auto pause =
      std::min(limits_.longest_pause, limits_.first_pause * (int64_t(1) << std::min(failures_, 20)));
  ++failures_;
  pause_end_ = limits_.now() + pause;
  const std::string message = "The remote cache " + server_ + " " + why + "; it is left alone for " +
                              std::to_string(pause.count()) + " ms.";
  warned_->exchange(true) ? log("cache", message) : warn(message);
}

bool RemoteLine::pausing() {
  std::lock_guard lock(mutex_);
  return in_pause();
}

bool RemoteLine::flush(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return queue_.empty() && !busy_; });
}

void RemoteLine::close(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) return;
  closing_ = true;
  changed_.notify_all();
  const bool ended = changed_.wait_for(lock, time, [this] { return ended_; });
  while (!queue_.empty()) drop_oldest();
  lock.unlock();
  ended ? thread_.join() : thread_.detach();
}

uint64_t RemoteLine::dropped() {
  std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace tandem::cache
