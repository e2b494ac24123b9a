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

/// Never destroyed: threads may still write while the process ends.
struct EventsFile {
  const std::string path = std::getenv("TANDEM_TRACE") ? std::getenv("TANDEM_TRACE") : "";
  int descriptor = -1;
  std::atomic<bool> works = false;

  EventsFile() {
    if (path.empty()) return;
    descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    works = true;
    if (descriptor < 0) give_up(std::strerror(errno));
  }

  void give_up(const std::string& why) {
    if (works.exchange(false))
      warn("TANDEM_TRACE: " + path + " cannot be written (" + why + "); nothing more is written there");
  }
};

EventsFile& events_file() {
  static EventsFile& file = *new EventsFile;
  return file;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

bool writes_events() { return events_file().works; }

void write_event(const char* event, const nlohmann::ordered_json& fields) {
  if (!writes_events()) return;
  nlohmann::ordered_json line = {
      {"event", event}, {"time", now()}, {"process", getpid()}, {"thread", syscall(SYS_gettid)}};
  line.update(fields);
  // Names come from the user, who may write them in any encoding.
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  // One call appends all of it or, on a full disk, less.
  const ssize_t written = write(events_file().descriptor, text.data(), text.size());
  if (written != ssize_t(text.size()))
    events_file().give_up(written < 0 ? std::strerror(errno) : "it is full");
}

}  // namespace tandem
