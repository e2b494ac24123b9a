#include "cache/local_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cache/local_store_fixture.h"

namespace tandem::cache {
namespace {

void set_age(const fs::path& path, std::chrono::hours age) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - age);
}

TEST_F(LocalStoreTest, GivesBackWhatWasPut) {
  EXPECT_EQ(store.get(Kind::Entry, kName).state, State::Absent);
  store.put(Kind::Entry, kName, "an entry");
  store.put(Kind::Artifact, kName, "an artifact");
  LocalStore later(folder, "", kMuch);
  EXPECT_EQ(later.get(Kind::Entry, kName).payload, "an entry");
  EXPECT_EQ(later.get(Kind::Artifact, kName).payload, "an artifact");
  EXPECT_EQ(later.get(Kind::Artifact, kOther).state, State::Absent);
  EXPECT_TRUE(fs::is_regular_file(entry(kName)));
  EXPECT_TRUE(fs::is_regular_file(artifact(kName)));
}

TEST_F(LocalStoreTest, EntryIsReplacedAndWholeArtifactIsLeftAlone) {
  const auto inode = [](const fs::path& path) {
    struct stat status = {};
    stat(path.c_str(), &status);
    return status.st_ino;
  };
  store.put(Kind::Entry, kName, "one");
  store.put(Kind::Entry, kName, "two");
  EXPECT_EQ(store.get(Kind::Entry, kName).payload, "two");

  store.put(Kind::Artifact, kName, "bytes");
  const ino_t before = inode(artifact(kName));
  fs::create_hard_link(artifact(kName), scratch.path() / "keeps-the-inode");
  store.put(Kind::Artifact, kName, "bytes");
  EXPECT_EQ(inode(artifact(kName)), before);

  write_bytes(artifact(kName), "junk");
  store.put(Kind::Artifact, kName, "bytes");
  EXPECT_NE(inode(artifact(kName)), before);
  EXPECT_EQ(store.get(Kind::Artifact, kName).payload, "bytes");
  EXPECT_EQ(files_in_folder(), 2u);
}

TEST_F(LocalStoreTest, NamesOtherThanHexThrow) {
  for (const std::string name : {"", "..", "../ab", "AB", "xyz", "ab/cd", "ab.cd", "ab\n"}) {
    const std::string message = "lower-case hexadecimal";
    expect_error([&] { store.get(Kind::Entry, name); }, message);
    expect_error([&] { store.put(Kind::Entry, name, ""); }, message);
    expect_error([&] { store.remove(Kind::Entry, name); }, message);
  }
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(LocalStoreTest, ListsCountsAndRemoves) {
  store.put(Kind::Entry, kName, "one");
  store.put(Kind::Artifact, kOther, "two");
  const std::vector<StoredFile> files = store.list();
  ASSERT_EQ(files.size(), 2u);
  uint64_t bytes = 0;
  for (const StoredFile& file : files) {
    EXPECT_EQ(file.name, file.kind == Kind::Entry ? kName : kOther);
    EXPECT_LT(std::chrono::system_clock::now() - file.last_use, std::chrono::minutes(1));
    bytes += file.bytes;
  }
  const LocalTotals totals = store.stats();
  EXPECT_EQ(totals.entries, 1u);
  EXPECT_EQ(totals.artifacts, 1u);
  EXPECT_EQ(totals.bytes, bytes);
  EXPECT_EQ(bytes, fs::file_size(entry(kName)) + fs::file_size(artifact(kOther)));
  EXPECT_TRUE(store.remove(Kind::Entry, kName));
  EXPECT_FALSE(store.remove(Kind::Entry, kName));
  EXPECT_EQ(names(), std::set{kOther});
}

TEST_F(LocalStoreTest, AbsentFolderIsEmptyAndStaysAbsent) {
  EXPECT_EQ(store.clear(), 0u);
  EXPECT_EQ(store.list().size(), 0u);
  EXPECT_EQ(store.stats().bytes, 0u);
  EXPECT_EQ(store.verify().size(), 0u);
  EXPECT_EQ(store.gc().evicted, 0u);
  EXPECT_FALSE(store.remove(Kind::Entry, kName));
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(LocalStoreTest, FolderThatGoesAwayIsMadeAgain) {
  store.put(Kind::Entry, kName, "one");
  test::remove_folder(folder);
  EXPECT_EQ(store.get(Kind::Entry, kName).state, State::Absent);
  store.put(Kind::Entry, kName, "two");
  EXPECT_EQ(store.get(Kind::Entry, kName).payload, "two");
}

TEST_F(LocalStoreTest, ClearRemovesOnlyItsOwn) {
  store.put(Kind::Entry, kName, "one");
  store.put(Kind::Artifact, kName, "two");
  for (const char* stranger :
       {"notes.txt", "entries/notes.txt", "entries/ab/notes.txt", "entries/ab/cd34", "other/ab/ab12"})
    write_bytes(folder / stranger, "mine");
  EXPECT_EQ(store.clear(), 2u);
  EXPECT_EQ(store.stats().bytes, 0u);
  EXPECT_EQ(files_in_folder(), 5u);
}

TEST_F(LocalStoreTest, DamagedIsReportedOnceAndReplaced) {
  for (const Kind kind : {Kind::Entry, Kind::Artifact}) {
    const fs::path path = kind == Kind::Entry ? entry(kName) : artifact(kName);
    store.put(kind, kName, "payload");
    const std::string whole = read_bytes(path);
    for (const std::string& bytes : {std::string(), std::string("junk"), whole.substr(0, whole.size() / 2),
                                     whole + "x", std::string(whole).replace(50, 1, "~")}) {
      write_bytes(path, bytes);
      ASSERT_EQ(store.verify().size(), 1u);
      EXPECT_EQ(store.verify()[0].name, kName);
      EXPECT_NE(store.verify()[0].complaint, "");
      const Fetched fetched = store.get(kind, kName);
      EXPECT_EQ(fetched.state, State::Damaged);
      EXPECT_NE(fetched.complaint, "");
      EXPECT_EQ(fetched.payload, "");
      EXPECT_EQ(store.get(kind, kName).state, State::Absent);
      store.put(kind, kName, "payload");
      EXPECT_EQ(store.get(kind, kName).payload, "payload");
    }
  }
  EXPECT_EQ(store.verify().size(), 0u);
}

TEST_F(LocalStoreTest, WhoLooksNeitherUsesNorRemoves) {
  EXPECT_EQ(store.look(Kind::Entry, kName).state, State::Absent);
  EXPECT_FALSE(fs::exists(folder));
  store.put(Kind::Entry, kName, "payload");
  const Time before = store.list()[0].last_use;
  EXPECT_EQ(store.look(Kind::Entry, kName).payload, "payload");
  EXPECT_EQ(store.list()[0].last_use, before);
  store.get(Kind::Entry, kName);
  EXPECT_GT(store.list()[0].last_use, before);
  fs::resize_file(entry(kName), 10);
  EXPECT_EQ(store.look(Kind::Entry, kName).state, State::Damaged);
  EXPECT_TRUE(fs::exists(entry(kName)));
}

TEST_F(LocalStoreTest, SignedFolderRefusesWhatItsKeyDidNotSign) {
  LocalStore ours(folder, "ours", kMuch), theirs(folder, "theirs", kMuch);
  const auto complaint = [&] {
    const Fetched fetched = ours.get(Kind::Entry, kName);
    EXPECT_EQ(fetched.state, State::Damaged);
    return fetched.complaint;
  };
  store.put(Kind::Entry, kName, "unsigned");
  EXPECT_NE(complaint().find("is not signed"), std::string::npos);
  theirs.put(Kind::Entry, kName, "wrongly signed");
  EXPECT_NE(complaint().find("is signed with another key"), std::string::npos);
  ours.put(Kind::Entry, kOther, "another entry");
  ours.put(Kind::Artifact, kName, "an artifact");
  fs::copy_file(entry(kOther), entry(kName));
  EXPECT_NE(complaint().find("was written under another name"), std::string::npos);
  fs::copy_file(artifact(kName), entry(kName));
  EXPECT_NE(complaint().find("is no entry"), std::string::npos);
  ours.put(Kind::Entry, kName, "ours");
  EXPECT_EQ(ours.get(Kind::Entry, kName).payload, "ours");
}

TEST_F(LocalStoreTest, WaitsForNobody) {
  store.put(Kind::Entry, kName, "x");
  fs::remove(entry(kName));
  ASSERT_EQ(mkfifo(entry(kName).c_str(), 0600), 0);
  EXPECT_EQ(store.get(Kind::Entry, kName).state, State::Damaged);
  const int lock = ::open((folder / "lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  LocalStore small(folder, "", 250);
  for (const std::string name : {"aa", "bb", "cc"}) small.put(Kind::Entry, name, std::string(30, name[0]));
  EXPECT_EQ(small.get(Kind::Entry, "cc").state, State::Found);
  EXPECT_EQ(names().count("aa"), 1u) << "somebody else is removing files";
  close(lock);
  EXPECT_EQ(small.gc().evicted, 1u);
}

TEST_F(LocalStoreTest, LeastRecentlyUsedGoFirst) {
  const std::string payload = incompressible(900);
  for (const std::string name : {"aa", "bb", "cc", "dd"}) store.put(Kind::Entry, name, payload);
  store.put(Kind::Artifact, "ee", payload);
  const uint64_t one = fs::file_size(entry("aa"));
  ASSERT_EQ(store.get(Kind::Entry, "aa").state, State::Found);
  store.put(Kind::Artifact, "ee", payload);

  LocalStore small(folder, "", one * 9 / 2);
  small.put(Kind::Artifact, "ff", payload);
  EXPECT_EQ(names(), (std::set<std::string>{"aa", "dd", "ee", "ff"}));
  LocalStore smaller(folder, "", 2 * one);
  const Collected collected = smaller.gc();
  EXPECT_EQ(collected.evicted, 2u);
  EXPECT_EQ(collected.bytes, 2 * one);
  EXPECT_EQ(names(), (std::set<std::string>{"ee", "ff"}));
}

TEST_F(LocalStoreTest, StaysWithinItsBytes) {
  const std::string payload = incompressible(1000);
  LocalStore small(folder, "", 50'000), another(folder, "", 50'000);
  for (int i = 0; i < 300; ++i) {
    (i % 3 ? small : another).put(i % 2 ? Kind::Entry : Kind::Artifact, std::to_string(100 + i), payload);
    ASSERT_LE(small.stats().bytes, 50'000u + 2 * 50'000 / 16);
  }
  EXPECT_GT(small.stats().bytes, 40'000u);
  EXPECT_EQ(names().count("399"), 1u);
  expect_error([&] { small.put(Kind::Entry, "aa", incompressible(60'000)); }, "max_bytes");
  EXPECT_GT(small.stats().bytes, 40'000u);
}

TEST_F(LocalStoreTest, GcRemovesWhatNobodyNeeds) {
  for (const std::string name : {"aa", "bb", "cc"}) store.put(Kind::Artifact, name, name);
  for (const std::string name : {"aa", "bb"}) set_age(artifact(name), std::chrono::hours(2));
  const Collected collected = store.gc([](const StoredFile& file) { return file.name == "aa"; });
  EXPECT_EQ(collected.unneeded, 1u);
  EXPECT_EQ(collected.evicted, 0u);
  EXPECT_GT(collected.bytes, 0u);
  EXPECT_EQ(names(), (std::set<std::string>{"aa", "cc"})) << "what is new may be about to be needed";
}

TEST_F(LocalStoreTest, GcRemovesWhatDeadWritersLeftBehind) {
  store.put(Kind::Entry, kName, "x");
  const fs::path place = entry(kName).parent_path();
  const std::string mine = std::to_string(getpid());
  write_bytes(place / ("temporary." + mine + ".1.0123456789abcdef"), "half");
  write_bytes(place / "temporary.999999999.2.0123456789abcdef", "written on another machine");
  write_bytes(place / ("temporary." + mine + ".3.0123456789abcdef"), "long ago");
  write_bytes(place / "temporary.txt", "not ours");
  set_age(place / ("temporary." + mine + ".3.0123456789abcdef"), std::chrono::hours(2));
  EXPECT_EQ(store.gc().abandoned, 1u);
  EXPECT_EQ(files_in_folder(), 4u);
  EXPECT_EQ(names(), std::set{kName});
}

TEST_F(LocalStoreTest, IsSafeBetweenThreads) {
  LocalStore shared(folder, "", 20'000);
  std::atomic<int> errors = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 30; ++i) {
        const std::string name = std::to_string(10 + random() % 10), payload = incompressible(1000) + name;
        shared.put(i % 2 ? Kind::Entry : Kind::Artifact, name, payload);
        const Fetched fetched = shared.get(Kind::Artifact, name);
        errors +=
            fetched.state == State::Damaged || (fetched.state == State::Found && fetched.payload != payload);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(shared.verify().size(), 0u);
}

}  // namespace
}  // namespace tandem::cache
