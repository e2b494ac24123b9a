#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/local_store_fixture.h"
#include "support/new_process.h"

namespace tandem::cache {
namespace {

using LocalStoreFolderTest = LocalStoreTest;

TEST_F(LocalStoreFolderTest, IsMadeForTheUserAlone) {
  folder = scratch.path() / "not" / "there" / "yet";
  const mode_t before = umask(0);
  LocalStore(folder, "", kMuch).put(Kind::Entry, kName, "x");
  umask(before);
  const auto mode = [](const fs::path& path) { return fs::status(path).permissions(); };
  for (fs::path path = entry(kName).parent_path(); path != scratch.path(); path = path.parent_path())
    EXPECT_EQ(mode(path), fs::perms::owner_all) << path;
  EXPECT_EQ(mode(entry(kName)), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(LocalStoreFolderTest, FoldersThatOthersMayWriteAreRefused) {
  store.put(Kind::Entry, kName, "x");
  for (const fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
    for (const fs::path& path : {folder, folder / "entries", folder / "entries/ab"}) {
      fs::permissions(path, fs::perms::owner_all | others);
      if (path == folder) expect_error([&] { LocalStore(folder, "", kMuch); }, "may be written to by others");
      expect_error([&] { store.get(Kind::Entry, kName); }, "may be written to by others");
      expect_error([&] { store.put(Kind::Entry, kName, "y"); }, "may be written to by others");
      fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::others_read);
      EXPECT_EQ(store.get(Kind::Entry, kName).payload, "x");
    }
  }
}

TEST_F(LocalStoreFolderTest, FolderOfSomebodyElseIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  store.put(Kind::Entry, kName, "x");
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  expect_error([&] { LocalStore(folder, "", kMuch); }, "belongs to user 65534");
  expect_error([&] { store.get(Kind::Entry, kName); }, "belongs to user 65534");
  ASSERT_EQ(chown(folder.c_str(), 0, 0), 0);
  ASSERT_EQ(symlink(folder.c_str(), (scratch.path() / "link").c_str()), 0);
  EXPECT_EQ(LocalStore(scratch.path() / "link", "", kMuch).get(Kind::Entry, kName).payload, "x");
  ASSERT_EQ(lchown((scratch.path() / "link").c_str(), 65534, 65534), 0);
  expect_error([&] { LocalStore(scratch.path() / "link", "", kMuch); },
               "is a link that belongs to user 65534");
}

TEST_F(LocalStoreFolderTest, WhatIsNoFolderIsRefused) {
  write_bytes(folder, "a file");
  expect_error([&] { LocalStore(folder, "", kMuch); }, "cannot be opened (Not a directory)");
  expect_error([&] { LocalStore(folder / "below", "", kMuch).put(Kind::Entry, kName, "x"); },
               "Not a directory");
}

TEST_F(LocalStoreFolderTest, LinksInTheFolderLeadNowhere) {
  const fs::path outside = scratch.path() / "outside";
  fs::create_directory(outside);
  fs::permissions(outside, fs::perms::owner_all);
  store.put(Kind::Entry, kName, "x");

  fs::rename(entry(kName), outside / "entry");
  fs::create_symlink(outside / "entry", entry(kName));
  EXPECT_EQ(store.get(Kind::Entry, kName).state, State::Damaged);
  EXPECT_EQ(store.list().size(), 0u);
  store.put(Kind::Entry, kName, "y");
  EXPECT_EQ(store.get(Kind::Entry, kName).payload, "y");
  EXPECT_FALSE(fs::is_symlink(entry(kName)));

  for (const fs::path& path : {folder / "entries/ab", folder / "entries"}) {
    test::remove_folder(path);
    fs::create_symlink(outside, path);
    expect_error([&] { store.put(Kind::Entry, kName, "z"); }, "cannot be opened");
    expect_error([&] { store.get(Kind::Entry, kName); }, "cannot be opened");
    EXPECT_THROW(store.clear(), Error);
    fs::remove(path);
  }

  fs::create_symlink(outside / "lock", folder / "lock");
  expect_error([&] { store.gc(); }, "cannot be locked");
  EXPECT_EQ(test::in_folder(outside).size(), 1u);
  EXPECT_EQ(open(Kind::Entry, kName, read_bytes(outside / "entry"), "").payload, "x");
}

class LocalStoreFolderDeathTest : public LocalStoreTest {
 protected:
  LocalStoreFolderDeathTest() { scratch.share(); }
};

void become_nobody() {
  const bool is_done = geteuid() != 0 || (setegid(65534) == 0 && seteuid(65534) == 0);
  ASSERT_TRUE(is_done);
}

void use_read_only(const fs::path& folder) {
  LocalStore store(folder, "", kMuch);
  store.put(Kind::Entry, kName, "x");
  store.put(Kind::Artifact, kName, "y");
  store.put(Kind::Entry, "abba", "damaged");
  write_bytes(folder / "entries/ab/abba", "junk");
  fs::permissions(folder.parent_path(), fs::perms(0755));
  for (const char* path : {"", "entries", "entries/ab", "artifacts", "artifacts/ab"})
    fs::permissions(folder / path, fs::perms(0555));
  for (const char* path : {"entries/ab/ab12", "entries/ab/abba", "artifacts/ab/ab12"})
    fs::permissions(folder / path, fs::perms(0444));
  become_nobody();
  EXPECT_EQ(store.get(Kind::Entry, kName).payload, "x");
  EXPECT_EQ(store.get(Kind::Entry, "abba").state, State::Damaged);
  EXPECT_EQ(store.get(Kind::Entry, "abba").state, State::Damaged) << "it could not be removed";
  EXPECT_EQ(store.list().size(), 3u);
  EXPECT_EQ(store.verify().size(), 1u);
  store.put(Kind::Artifact, kName, "y");
  expect_error([&] { store.put(Kind::Entry, kName, "z"); }, "Permission denied");
  expect_error([&] { store.put(Kind::Entry, kOther, "z"); }, "Permission denied");
  expect_error([&] { store.remove(Kind::Entry, kName); }, "Permission denied");
  expect_error([&] { store.gc(); }, "Permission denied");
  EXPECT_EQ(store.get(Kind::Entry, kName).payload, "x");
}

TEST_F(LocalStoreFolderDeathTest, FolderThatMayOnlyBeReadIsUsable) {
  IN_A_NEW_PROCESS(use_read_only(folder));
}

void use_unreadable(const fs::path& folder) {
  LocalStore store(folder, "", kMuch);
  store.put(Kind::Entry, kName, "x");
  fs::permissions(folder.parent_path(), fs::perms(0755));
  for (const char* path : {"", "entries", "entries/ab"}) fs::permissions(folder / path, fs::perms(0755));
  fs::permissions(folder / "entries/ab/ab12", fs::perms(0));
  become_nobody();
  const Fetched fetched = store.get(Kind::Entry, kName);
  EXPECT_EQ(fetched.state, State::Damaged);
  EXPECT_EQ(fetched.complaint, "cannot be read (Permission denied)");
}

TEST_F(LocalStoreFolderDeathTest, FileThatMayNotBeReadIsDamaged) { IN_A_NEW_PROCESS(use_unreadable(folder)); }

void use_full_disk(const fs::path& folder) {
  LocalStore store(folder, "", kMuch);
  store.put(Kind::Entry, kName, "before");
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1000, 1000};  // a write beyond it fails as on a full disk, after some bytes
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  expect_error([&] { store.put(Kind::Entry, kName, incompressible(5000)); },
               "cannot be written (File too large)");
  expect_error([&] { store.put(Kind::Artifact, kOther, incompressible(5000)); },
               "cannot be written (File too large)");
  EXPECT_EQ(store.get(Kind::Entry, kName).payload, "before");
  EXPECT_EQ(store.get(Kind::Artifact, kOther).state, State::Absent);
  EXPECT_EQ(test::files_below(folder).size(), 1u);
}

TEST_F(LocalStoreFolderDeathTest, FullDiskLeavesNothingBehind) { IN_A_NEW_PROCESS(use_full_disk(folder)); }

}  // namespace
}  // namespace tandem::cache
