#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>

#include "cache/local_store_fixture.h"
#include "cache/long_form.h"
#include "support/new_process.h"
#include "cache/scratch_folder.h"

namespace tandem::cache {
namespace {

constexpr Kind kKinds[] = {Kind::Entry, Kind::Artifact};

std::string name_of(size_t number) { return sha256(std::to_string(number)); }

/// What tells whether it is whole: its size and contents follow from its name and its first eight bytes.
std::string payload_of(const std::string& name, uint64_t seed, size_t largest) {
  std::mt19937_64 random(seed);
  std::string payload(reinterpret_cast<const char*>(&seed), sizeof seed);
  payload += name;
  for (size_t size = random() % largest; payload.size() < size;) {
    const uint64_t value = random();
    payload.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return payload;
}

bool is_whole(const std::string& name, const std::string& payload, size_t largest) {
  uint64_t seed = 0;
  if (payload.size() < sizeof seed) return false;
  payload.copy(reinterpret_cast<char*>(&seed), sizeof seed);
  return payload == payload_of(name, seed, largest);
}

size_t count_temporary(const fs::path& folder) {
  const auto files = test::files_below(folder);
  return size_t(std::count_if(files.begin(), files.end(), [](const fs::path& file) {
    return file.filename().string().starts_with("temporary.");
  }));
}

/// The exit status of the child is what `work` returns, which counts what went wrong.
pid_t start(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return child;
}

int write_for_ever(const fs::path& folder, unsigned seed, int started) {
  std::mt19937 random(seed);
  LocalStore store(folder, "", kMuch);
  [[maybe_unused]] const ssize_t ignored = write(started, "x", 1);
  while (true) {
    const std::string name = name_of(random() % 10);
    const Kind kind = kKinds[random() % 2];
    if (kind == Kind::Artifact) store.remove(kind, name);  // one that is there would not be written again
    store.put(kind, name, payload_of(name, random(), 500'000));
  }
}

void expect_all_whole(const fs::path& folder) {
  LocalStore store(folder, "", kMuch);
  for (size_t number = 0; number < 10; ++number) {
    for (const Kind kind : kKinds) {
      const Fetched fetched = store.get(kind, name_of(number));
      EXPECT_EQ(fetched.complaint, "");
      EXPECT_TRUE(fetched.state == Fetched::State::Absent ||
                  is_whole(name_of(number), fetched.payload, 500'000));
    }
  }
}

void kill_writers(const fs::path& folder, unsigned times) {
  std::mt19937 random(5);
  for (unsigned i = 0; i < times && !testing::Test::HasFailure(); ++i) {
    int started[2];
    ASSERT_EQ(pipe(started), 0);
    const pid_t writer = start([&] { return write_for_ever(folder, i, started[1]); });
    close(started[1]);
    char byte;
    ASSERT_EQ(read(started[0], &byte, 1), 1);
    close(started[0]);
    usleep(random() % 30'000);
    int status = 0;
    kill(writer, SIGKILL);
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
    expect_all_whole(folder);
  }
  const size_t left_behind = count_temporary(folder);
  EXPECT_GT(left_behind, 0u) << "no writer was killed while it wrote";
  LocalStore store(folder, "", kMuch);
  EXPECT_EQ(store.gc().abandoned, left_behind);
  EXPECT_EQ(count_temporary(folder), 0u);
  EXPECT_EQ(store.verify().size(), 0u);
  EXPECT_GT(store.stats().bytes, 0u);
  std::fprintf(stderr, "%u writers killed, %zu temporary files left behind and removed\n", times,
               left_behind);
}

TEST(LocalStoreProcessesDeathTest, KilledWritersLeaveNoHalfFiles) {
  const ScratchFolder scratch;
  scratch.share();
  IN_A_NEW_PROCESS(kill_writers(scratch.path() / "cache", in_long_form(1000u, 50u)));
}

struct Crowd {
  size_t processes, operations, names;
  uint64_t max_bytes;
  size_t largest = 20'000;
};

/// How many of the operations went wrong. Every process uses every file, in an order of its own.
int use(const fs::path& folder, const Crowd& crowd, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::pair<Kind, size_t>> files;
  for (size_t number = 0; number < crowd.names; ++number)
    for (const Kind kind : kKinds) files.emplace_back(kind, number);
  std::shuffle(files.begin(), files.end(), random);
  int errors = 0;
  LocalStore store(folder, "key", crowd.max_bytes);
  for (size_t i = 0; i < crowd.operations; ++i) {
    const auto [kind, number] = files[i % files.size()];
    const std::string name = name_of(number);
    try {
      if (i % 25 == 24) store.gc();
      const Fetched fetched = store.get(kind, name);
      errors += fetched.state == Fetched::State::Damaged ||
                (fetched.state == Fetched::State::Found && !is_whole(name, fetched.payload, crowd.largest));
      if (fetched.state == Fetched::State::Absent || random() % 2)
        store.put(kind, name, payload_of(name, kind == Kind::Artifact ? number : random(), crowd.largest));
      if (store.get(kind, name).state != Fetched::State::Found) errors += crowd.max_bytes == kMuch;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ++errors;
    }
  }
  return std::min(errors, 255);
}

void use_together(const fs::path& folder, const Crowd& crowd) {
  std::vector<pid_t> processes;
  for (unsigned i = 0; i < crowd.processes; ++i)
    processes.push_back(start([&, i] { return use(folder, crowd, i); }));
  for (const pid_t process : processes) {
    int status = 0;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_EQ(status, 0);
  }
  LocalStore store(folder, "key", crowd.max_bytes);
  EXPECT_EQ(store.gc().abandoned, 0u) << "nobody died";
  EXPECT_EQ(store.verify().size(), 0u);
  const std::vector<StoredFile> files = store.list();
  const auto in_folder = test::files_below(folder);
  EXPECT_EQ(size_t(std::count_if(in_folder.begin(), in_folder.end(),
                                 [](const fs::path& file) { return file.filename() != "lock"; })),
            files.size())
      << "something else than whole files was left behind";
  EXPECT_TRUE(crowd.max_bytes < kMuch || files.size() == 2 * crowd.names) << files.size() << " files";
  EXPECT_LE(store.stats().bytes, crowd.max_bytes);
  for (const StoredFile& file : files)
    EXPECT_TRUE(is_whole(file.name, store.get(file.kind, file.name).payload, crowd.largest));
}

TEST(LocalStoreProcessesDeathTest, ManyShareOneFolder) {
  const ScratchFolder scratch;
  scratch.share();
  const Crowd crowd = in_long_form(Crowd{16, 200, 50, kMuch}, Crowd{4, 50, 10, kMuch});
  IN_A_NEW_PROCESS(use_together(scratch.path() / "cache", crowd));
}

TEST(LocalStoreProcessesDeathTest, ManyShareOneFullFolder) {
  const ScratchFolder scratch;
  scratch.share();
  const Crowd crowd = in_long_form(Crowd{16, 200, 50, 200'000}, Crowd{4, 50, 10, 50'000});
  IN_A_NEW_PROCESS(use_together(scratch.path() / "cache", crowd));
}

}  // namespace
}  // namespace tandem::cache
