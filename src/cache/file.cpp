#include "cache/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "cache/frame.h"
#include "tandem/error.h"

namespace tandem::cache {
namespace {

constexpr const char* kTemporary = "temporary.";
constexpr std::chrono::hours kLongestWrite{1};

[[noreturn]] void fail(const Folder& folder, const std::string& name, const char* what) {
  const std::string why = reason();
  throw Error("The cache file " + (folder.path / name).string() + " cannot be " + what + " (" + why +
              "); make room or give permission, or set CacheOptions::directory to another folder.");
}

// Numbers of processes mean something on one machine, until it starts again, and in one container; this names
// that place.
const std::string& place_of_processes() {
  static const std::string place = [] {
    std::string boot, container(64, 0);
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    const ssize_t size = readlink("/proc/self/ns/pid", container.data(), container.size());
    return boot.empty() || size <= 0 ? std::string()
                                     : sha256(boot + container.substr(0, size_t(size))).substr(0, 16);
  }();
  return place;
}

std::string temporary_name() {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    random = uint64_t(std::chrono::steady_clock::now().time_since_epoch().count());
  return kTemporary + std::to_string(getpid()) + "." + std::to_string(random) + "." + place_of_processes();
}

bool is_alive(pid_t process) { return kill(process, 0) == 0 || errno != ESRCH; }

/// A new file beside the one to be written, removed unless it was renamed to it.
class Temporary {
 public:
  Temporary(const Folder& folder, const std::string& name)
      : folder_(folder),
        name_(name),
        temporary_(temporary_name()),
        file_(openat(folder.descriptor.get(), temporary_.c_str(), kNew, S_IRUSR | S_IWUSR)) {
    if (!file_) fail(folder_, name_, "made");
  }
  ~Temporary() {
    if (!is_kept_) unlinkat(folder_.descriptor.get(), temporary_.c_str(), 0);
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(folder_, name_, "written");
      bytes.remove_prefix(size_t(written));
    }
  }

  // The folder itself is not flushed: when the machine stops, the cache may lose a file but not have half of
  // one.
  void keep() {
    mark_as_used(file_);
    if (fsync(file_.get()) != 0) fail(folder_, name_, "flushed");
    const int folder = folder_.descriptor.get();
    if (renameat(folder, temporary_.c_str(), folder, name_.c_str()) != 0)
      fail(folder_, name_, "put in its place");
    is_kept_ = true;
  }

 private:
  static constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

  const Folder& folder_;
  const std::string& name_;
  const std::string temporary_;
  const Descriptor file_;
  bool is_kept_ = false;
};

}  // namespace

std::optional<struct stat> look_at(const Folder& folder, const std::string& name) {
  struct stat status;
  if (fstatat(folder.descriptor.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(status.st_mode))
    return std::nullopt;
  return status;
}

Time last_use(const struct stat& status) {
  return Time(std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec));
}

bool remove_file(const Folder& folder, const std::string& name) {
  if (unlinkat(folder.descriptor.get(), name.c_str(), 0) == 0) return true;
  if (errno != ENOENT) fail(folder, name, "removed");
  return false;
}

void discard(const Folder& folder, const std::string& name, const Descriptor& file) {
  struct stat opened;
  const std::optional<struct stat> present = look_at(folder, name);
  if (fstat(file.get(), &opened) != 0 || !present || present->st_ino != opened.st_ino) return;
  unlinkat(folder.descriptor.get(), name.c_str(), 0);
}

Descriptor open_file(const Folder& folder, const std::string& name) {
  return Descriptor(
      openat(folder.descriptor.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

std::optional<std::string> read_all(const Descriptor& file) {
  struct stat status;
  if (fstat(file.get(), &status) != 0) return std::nullopt;
  std::string bytes(S_ISREG(status.st_mode) ? size_t(status.st_size) : 0, 0);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) bytes.resize(done);
    done += size_t(count);
  }
  return bytes;
}

void mark_as_used(const Descriptor& file) {
  // The kernel's own "now" is only as fine as its timer.
  timespec times[2] = {{0, UTIME_OMIT}, {}};
  clock_gettime(CLOCK_REALTIME, &times[1]);
  futimens(file.get(), times);
}

void write_file(const Folder& folder, const std::string& name, const std::string& bytes) {
  Temporary temporary(folder, name);
  temporary.write(bytes);
  temporary.keep();
}

bool is_abandoned(const Folder& folder, const std::string& name) {
  long process = 0;
  char place[32] = "";
  if (std::sscanf(name.c_str(), "temporary.%ld.%*u.%31s", &process, place) < 1) return false;
  const std::optional<struct stat> status = look_at(folder, name);
  if (!status) return false;
  if (std::chrono::system_clock::now() - last_use(*status) > kLongestWrite) return true;
  return *place && place == place_of_processes() && !is_alive(pid_t(process));
}

}  // namespace tandem::cache
