#include "base/events.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/log.h"

namespace tandem {

namespace {

void complain(const char* path) {
  static std::atomic<bool> said = false;
  const std::string why = std::strerror(errno);
  if (!said.exchange(true)) warn(std::string("TANDEM_TRACE: ") + path + " cannot be written (" + why + "); nothing more is written there");
}

/// -1: nobody asked, or the file cannot be opened. Stays open as long as the process.
int events_file() {
  static const int file = [] {
    const char* path = std::getenv("TANDEM_TRACE");
    if (!path || !*path) return -1;
    const int opened = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (opened < 0) complain(path);
    return opened;
  }();
  return file;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

bool writes_events() { return events_file() >= 0; }

void write_event(const char* event, const nlohmann::ordered_json& fields) {
  if (!writes_events()) return;
  nlohmann::ordered_json line = {{"event", event}, {"time", now()}, {"process", getpid()}, {"thread", syscall(SYS_gettid)}};
  line.update(fields);
  // Names come from the user, who may write them in any encoding.
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  // One call appends all of it or, on a full disk, less.
  if (write(events_file(), text.data(), text.size()) != ssize_t(text.size())) complain(std::getenv("TANDEM_TRACE"));
}

}  // namespace tandem
