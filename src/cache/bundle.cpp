#include "cache/bundle.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "cache/folder.h"

namespace tandem::cache {

namespace {

// The file: magic, length of the index, index, members. The index is a frame of lines "<kind> <name> <bytes>
// <sha256 of the frame>", one for each member; members are frames. The index names the very frames, so that
// none can be exchanged for another that is signed as well.
constexpr std::string_view magic = "\x89TANDEM-BUNDLE\r\n";
constexpr const char* index_name = "bundle";
constexpr size_t largest_index = size_t(64) << 20;
constexpr std::string_view kind_names[] = {"entry", "artifact"};
static_assert(std::endian::native == std::endian::little, "the length is written as it lies in memory");

bool is_hex(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& complaint) {
  throw Error("The bundle " + path.string() + " " + complaint +
              "; export it again where it comes from, with the signing key that is used here.");
}

[[noreturn]] void fail_to_write(const std::filesystem::path& path) {
  throw Error("The bundle " + path.string() + " cannot be written (" + reason() +
              "); make room or give permission, or name another file.");
}

struct Member {
  Kind kind;
  std::string name;
  uint64_t bytes;
  std::string digest;
};

std::string index_line(const Member& member) {
  return std::string(kind_names[size_t(member.kind)]) + " " + member.name + " " +
         std::to_string(member.bytes) + " " + member.digest + "\n";
}

/// Up to the separator, which goes too; nothing when it is missing.
std::optional<std::string_view> take_until(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  if (end == text.npos) return std::nullopt;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end + 1);
  return taken;
}

std::optional<Member> take_member(std::string_view& text) {
  // what is left of the line once the other words are taken
  std::optional<std::string_view> digest = take_until(text, '\n');
  if (!digest) return std::nullopt;
  const auto kind = take_until(*digest, ' '), name = take_until(*digest, ' '),
             bytes = take_until(*digest, ' ');
  if (!kind || !name || !bytes) return std::nullopt;
  const auto known = std::ranges::find(kind_names, *kind);
  uint64_t size = 0;
  const auto [end, error] = std::from_chars(bytes->data(), bytes->data() + bytes->size(), size);
  if (known == std::end(kind_names) || !is_hex(*name) || error != std::errc() ||
      end != bytes->data() + bytes->size() || !is_hex(*digest))
    return std::nullopt;
  return Member{Kind(known - kind_names), std::string(*name), size, std::string(*digest)};
}

/// A new file beside the one to be written, removed unless it was renamed to it.
class NewBundle {
 public:
  explicit NewBundle(const std::filesystem::path& path) : path_(path), temporary_(path) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) fail_to_write(path_);
    temporary_ += ".temporary." + std::to_string(random);
    file_ =
        Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file_) fail_to_write(path_);
  }
  ~NewBundle() {
    if (file_) unlink(temporary_.c_str());
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_to_write(path_);
      bytes.remove_prefix(size_t(written));
    }
  }

  void keep() {
    if (fsync(file_.get()) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) fail_to_write(path_);
    file_ = Descriptor();
  }

 private:
  const std::filesystem::path& path_;
  std::filesystem::path temporary_;
  Descriptor file_;
};

/// Reads on from where it stopped, and never more than the file has.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    struct stat status{};
    if (!file_ || fstat(file_.get(), &status) != 0)
      throw Error("The bundle " + path_.string() + " cannot be opened (" + reason() +
                  "); check its name and that you may read it.");
    if (!S_ISREG(status.st_mode))
      throw Error("The bundle " + path_.string() + " is no file; name the file that was exported.");
    left_ = uint64_t(status.st_size);
  }

  uint64_t left() const { return left_; }
  std::string take(uint64_t size) {
    if (size > left_) refuse(path_, "was cut short");
    std::string bytes(size, '\0');
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::read(file_.get(), bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        throw Error("The bundle " + path_.string() + " cannot be read (" + reason() + "); check its disk.");
      if (count == 0) refuse(path_, "was cut short while it was being read");
      done += size_t(count);
    }
    left_ -= size;
    return bytes;
  }

 private:
  const std::filesystem::path& path_;
  Descriptor file_;
  uint64_t left_ = 0;
};

std::string take_payload(Reader& reader, const std::filesystem::path& path, std::string_view signing_key,
                         size_t largest, const Member& member) {
  const std::string frame = reader.take(member.bytes);
  const auto refuse_member = [&](const std::string& complaint) {
    refuse(path, "has " + std::string(kind_names[size_t(member.kind)]) + " " + member.name + ", which " +
                     complaint);
  };
  if (sha256(frame) != member.digest) refuse_member("does not match the index");
  Opened opened = open(member.kind, member.name, frame, signing_key, largest);
  if (!opened.complaint.empty()) refuse_member(opened.complaint);
  return std::move(opened.payload);
}

std::vector<Member> take_index(Reader& reader, const std::filesystem::path& path,
                               std::string_view signing_key) {
  if (reader.left() < magic.size() || reader.take(magic.size()) != magic)
    refuse(path, "does not begin as a bundle does");
  uint64_t size = 0;
  std::memcpy(&size, reader.take(sizeof size).data(), sizeof size);
  if (size > largest_index) refuse(path, "declares an index of " + std::to_string(size) + " bytes");
  const Opened index = open(Kind::Entry, index_name, reader.take(size), signing_key, largest_index);
  if (!index.complaint.empty()) refuse(path, "has an index that " + index.complaint);

  std::vector<Member> members;
  uint64_t expected = 0;
  for (std::string_view text = index.payload; !text.empty();) {
    std::optional<Member> member = take_member(text);
    if (!member) refuse(path, "has an index that is not written as an index is");
    if (member->bytes > reader.left() - expected) refuse(path, "was cut short");
    expected += member->bytes;
    members.push_back(std::move(*member));
  }
  if (expected != reader.left()) refuse(path, "has bytes after its end");
  return members;
}

}  // namespace

void write_bundle(const std::filesystem::path& path, const std::vector<BundleItem>& items,
                  std::string_view signing_key) {
  std::string index;
  std::vector<std::string> frames;
  for (const auto& [kind, name, payload] : items) {
    if (!is_hex(name))
      throw Error("An item of a bundle is named \"" + name + "\"; names are lower-case hexadecimal digits.");
    const std::string& frame = frames.emplace_back(seal(kind, name, payload, signing_key));
    index += index_line({kind, name, frame.size(), sha256(frame)});
  }
  if (index.size() > largest_index)
    throw Error("A bundle of " + std::to_string(items.size()) +
                " items has too many to be read again; export fewer at a time.");
  const std::string sealed_index = seal(Kind::Entry, index_name, index, signing_key);
  const uint64_t size = sealed_index.size();

  NewBundle file(path);
  file.write(magic);
  file.write({reinterpret_cast<const char*>(&size), sizeof size});
  file.write(sealed_index);
  for (const std::string& frame : frames) file.write(frame);
  file.keep();
}

std::vector<BundleItem> read_bundle(const std::filesystem::path& path, std::string_view signing_key,
                                    size_t largest) {
  Reader reader(path);
  std::vector<BundleItem> items;
  for (const Member& member : take_index(reader, path, signing_key)) {
    items.push_back({member.kind, member.name, take_payload(reader, path, signing_key, largest, member)});
    largest -= items.back().payload.size();
  }
  return items;
}

}  // namespace tandem::cache
