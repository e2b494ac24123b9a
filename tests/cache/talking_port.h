/// A port that tells everybody the same thing, whatever they ask.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cache/redis_server.h"

namespace tandem::cache {

class TalkingPort {
 public:
  /// With a time in between, byte by byte.
  explicit TalkingPort(std::string bytes, std::chrono::milliseconds between = {})
      : bytes_(std::move(bytes)), between_(between), thread_([this] { serve(); }) {}
  ~TalkingPort() {
    ending_ = true;
    thread_.join();
  }
  TalkingPort(const TalkingPort&) = delete;

  uint16_t port() const { return socket_.port(); }

 private:
  void serve() {
    while (!ending_) {
      pollfd waiting{socket_.descriptor(), POLLIN, 0};
      if (poll(&waiting, 1, 10) <= 0) continue;
      const int guest = accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
      talk_to(guest);
      close(guest);
    }
  }

  /// Until the guest goes.
  void talk_to(int guest) {
    const size_t step = between_.count() ? 1 : bytes_.size();
    size_t said = 0;
    char heard[4096];
    while (!ending_) {
      if (said < bytes_.size() && send(guest, bytes_.data() + said, step, MSG_NOSIGNAL) < 0) return;
      said += step;
      pollfd waiting{guest, POLLIN, 0};
      if (poll(&waiting, 1, between_.count() ? int(between_.count()) : 10) > 0 &&
          recv(guest, heard, sizeof heard, 0) <= 0)
        return;
    }
  }

  const std::string bytes_;
  const std::chrono::milliseconds between_;
  SilentPort socket_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace tandem::cache
