#include "cache/bundle.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tandem/error.h>

#include <csignal>
#include <cstring>
#include <random>

#include "cache/scratch_folder.h"

namespace tandem::cache {
namespace {

constexpr std::string_view magic = "\x89TANDEM-BUNDLE\r\n";

std::string noise(size_t size, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = char(random());
  return bytes;
}

std::vector<BundleItem> some_items() {
  return {{Kind::Entry, "ab12", "an entry"},
          {Kind::Artifact, "ab12", noise(3000)},
          {Kind::Artifact, "cd", ""},
          {Kind::Entry, "0", std::string(100000, 'z')}};
}

std::string refusal(const std::filesystem::path& path, std::string_view key = {},
                    size_t largest = size_t(1) << 32) {
  try {
    read_bundle(path, key, largest);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void expect_refusal(const std::filesystem::path& path, const std::string& part, std::string_view key = {},
                    size_t largest = size_t(1) << 32) {
  const std::string said = refusal(path, key, largest);
  EXPECT_NE(said.find(part), std::string::npos) << "said: " << said << "\nnot: " << part;
}

void expect_equal(const std::vector<BundleItem>& items, const std::vector<BundleItem>& expected) {
  ASSERT_EQ(items.size(), expected.size());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].kind, expected[i].kind);
    EXPECT_EQ(items[i].name, expected[i].name);
    EXPECT_TRUE(items[i].payload == expected[i].payload) << i;
  }
}

/// A new file each time: cutting an old one short makes some file systems wait for the disk.
void rewrite(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path);
  write_bytes(path, bytes);
}

/// A bundle with an index of one's own, whose checksums and signature are right.
std::string forged(const std::string& index, const std::string& members = {}, std::string_view key = {}) {
  const std::string sealed = seal(Kind::Entry, "bundle", index, key);
  const uint64_t size = sealed.size();
  return std::string(magic) + std::string(reinterpret_cast<const char*>(&size), sizeof size) + sealed +
         members;
}

struct Bundle : testing::Test {
  ScratchFolder scratch;
  std::filesystem::path path = scratch.path() / "job.bundle";

  size_t files() const { return test::in_folder(scratch.path()).size(); }
};

TEST_F(Bundle, GivesBackWhatWasWritten) {
  for (const char* key : {"", "a key"})
    for (const auto& items : {std::vector<BundleItem>(), some_items()}) {
      write_bundle(path, items, key);
      expect_equal(read_bundle(path, key), items);
      EXPECT_EQ(files(), 1u);
    }
}

TEST_F(Bundle, HoldsManyItems) {
  std::vector<BundleItem> items;
  for (int i = 0; i < 5000; ++i)
    items.push_back({i % 3 ? Kind::Artifact : Kind::Entry, sha256(std::to_string(i)),
                     noise(size_t(i) % 50, uint64_t(i))});
  write_bundle(path, items, "a key");
  expect_equal(read_bundle(path, "a key"), items);
}

TEST_F(Bundle, OfASignerIsReadWithoutAKeyButNotWithAnother) {
  write_bundle(path, some_items(), "a key");
  expect_equal(read_bundle(path, ""), some_items());
  expect_refusal(path, "has an index that is signed with another key", "another key");
  write_bundle(path, some_items(), "");
  expect_refusal(path, "has an index that is not signed", "a key");
}

TEST_F(Bundle, ReplacesAnOlderOneAtOnceAndKeepsItWhenWritingFails) {
  write_bundle(path, some_items(), "");
  write_bundle(path, {{Kind::Entry, "1", "newer"}}, "");
  expect_equal(read_bundle(path, ""), {{Kind::Entry, "1", "newer"}});

  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 10000;
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write_bundle(path, {{Kind::Entry, "2", noise(100000)}}, ""), Error);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  expect_equal(read_bundle(path, ""), {{Kind::Entry, "1", "newer"}});
  EXPECT_EQ(files(), 1u) << "no temporary file is left";
}

TEST_F(Bundle, SaysWhatCannotBeWritten) {
  EXPECT_THROW(write_bundle(scratch.path() / "absent" / "job.bundle", some_items(), ""), Error);
  EXPECT_THROW(write_bundle(scratch.path(), some_items(), ""), Error) << "a folder";
  for (const char* name : {"", "AB", "a b", "a\nb", "../a"})
    EXPECT_THROW(write_bundle(path, {{Kind::Entry, name, "x"}}, ""), Error) << name;
  EXPECT_EQ(files(), 0u);
}

TEST_F(Bundle, SaysWhatIsWrongWithAFile) {
  expect_refusal(path, "cannot be opened (No such file or directory)");
  expect_refusal(scratch.path(), "is no file");
  ASSERT_EQ(mkfifo((scratch.path() / "pipe").c_str(), 0600), 0);
  expect_refusal(scratch.path() / "pipe", "is no file");
  rewrite(path, "");
  expect_refusal(path, "does not begin as a bundle does");
  rewrite(path, "junk that is long enough to have a header in it");
  expect_refusal(path, "does not begin as a bundle does");
  write_bundle(path, some_items(), "");
  const std::string whole = read_bytes(path);
  rewrite(path, whole.substr(0, whole.size() - 1));
  expect_refusal(path, "was cut short");
  rewrite(path, whole + "x");
  expect_refusal(path, "has bytes after its end");
  rewrite(path, whole);
  expect_refusal(path, "has entry 0, which", {}, 100000);
  EXPECT_EQ(refusal(path, {}, 103008), "");
}

TEST_F(Bundle, RefusesEveryTruncation) {
  write_bundle(path, {{Kind::Entry, "ab12", "an entry"}, {Kind::Artifact, "cd", "a part"}}, "a key");
  const std::string whole = read_bytes(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    rewrite(path, whole.substr(0, size));
    ASSERT_NE(refusal(path, size % 2 ? "a key" : ""), "") << size;
  }
}

TEST_F(Bundle, RefusesMembersThatWereSignedForAnotherBundle) {
  const BundleItem first{Kind::Entry, "ab", "version 1"}, second{Kind::Entry, "ab", "version 2"};
  const std::string older = seal(first.kind, first.name, first.payload, "a key"),
                    newer = seal(second.kind, second.name, second.payload, "a key");
  write_bundle(path, {second}, "a key");
  std::string bytes = read_bytes(path);
  ASSERT_TRUE(bytes.ends_with(newer));
  ASSERT_EQ(older.size(), newer.size());
  bytes.replace(bytes.size() - older.size(), older.size(), older);
  rewrite(path, bytes);
  expect_refusal(path, "has entry ab, which does not match the index", "a key");
}

TEST_F(Bundle, RefusesAnIndexThatLiesWithRightChecksums) {
  const std::string frame = seal(Kind::Entry, "ab", "x", ""), size = std::to_string(frame.size()),
                    digest = sha256(frame), good = "entry ab " + size + " " + digest + "\n";
  rewrite(path, forged(good, frame));
  expect_equal(read_bundle(path, ""), {{Kind::Entry, "ab", "x"}});
  std::string many;
  for (int i = 0; i < 100000; ++i) many += good;
  const std::string lies[] = {
      "entry",
      "\n",
      "entry\n",
      "entry ab\n",
      "entry ab " + size + "\n",
      good.substr(0, good.size() - 1),
      "\n" + good,
      "Entry ab " + size + " " + digest + "\n",
      " ab " + size + " " + digest + "\n",
      "entry AB " + size + " " + digest + "\n",
      "entry ../../ab " + size + " " + digest + "\n",
      "entry  " + size + " " + digest + "\n",
      "entry ab -1 " + digest + "\n",
      "entry ab +" + size + " " + digest + "\n",
      "entry ab 18446744073709551615 " + digest + "\n",
      "entry ab 18446744073709551616 " + digest + "\n",
      "entry ab 4294967296 " + digest + "\n",
      "entry ab " + size + "  " + digest + "\n",
      "entry ab " + size + " " + sha256("y") + "\n",
      "entry ab " + size + " \n",
      "entry cd " + size + " " + digest + "\n",
      "artifact ab " + size + " " + digest + "\n",
      "entry ab 1 " + digest + "\nentry ab 18446744073709551615 " + digest + "\n",
      good + good,
      many,
      "",
      std::string(60 << 20, ' '),
      std::string(65 << 20, '\n'),
  };
  for (const std::string& lie : lies) {
    rewrite(path, forged(lie, frame));
    EXPECT_NE(refusal(path), "") << lie.substr(0, 200);
  }
  for (const char* name : {"../../ab", "AB", "index", ""}) {
    const std::string strange = seal(Kind::Entry, name, "x", "");
    rewrite(path, forged("entry " + std::string(name) + " " + std::to_string(strange.size()) + " " +
                             sha256(strange) + "\n",
                         strange));
    expect_refusal(path, "is not written as an index is");
  }
  std::string huge = forged(good, frame);
  const uint64_t length = uint64_t(1) << 62;
  std::memcpy(huge.data() + magic.size(), &length, sizeof length);
  rewrite(path, huge);
  expect_refusal(path, "declares an index of 4611686018427387904 bytes");
}

struct Mutator {
  std::mt19937_64 random{20};

  size_t below(size_t size) { return size ? random() % size : 0; }

  std::string operator()(const std::string& whole) {
    for (std::string bytes = whole;; bytes = whole) {
      for (size_t times = 1 + below(3); times > 0; --times) change(bytes);
      if (bytes != whole) return bytes;
    }
  }

  void change(std::string& bytes) {
    const size_t place = below(bytes.size()), from = below(bytes.size()),
                 length = below(std::min<size_t>(64, bytes.size() - std::max(place, from)));
    switch (below(7)) {
      case 0:
        bytes[place] = char(bytes[place] ^ (1 << below(8)));
        break;
      case 1:
        bytes[place] = char(random());
        break;
      case 2:
        bytes.resize(place + 1);
        break;
      case 3:
        bytes.erase(place, length);
        break;
      case 4:
        bytes.insert(place, noise(length, random()));
        break;
      case 5:
        bytes.replace(place, length, bytes.substr(from, length));
        break;
      default: {
        const uint64_t counts[] = {
            0,       1, bytes.size(), uint64_t(1) << 31, uint64_t(1) << 32, uint64_t(1) << 63, ~uint64_t(0),
            random()};
        const uint64_t count = counts[below(8)];
        std::memcpy(bytes.data() + std::min(place, bytes.size() - std::min<size_t>(8, bytes.size())), &count,
                    std::min<size_t>(8, bytes.size()));
      }
    }
    if (bytes.empty()) bytes = "x";
  }
};

TEST_F(Bundle, AcceptsNoneOfTenThousandMutations) {
  Mutator mutate;
  for (const char* key : {"", "a key"}) {
    write_bundle(path,
                 {{Kind::Entry, "ab12", "an entry"},
                  {Kind::Artifact, "cd", noise(300)},
                  {Kind::Artifact, "ef", std::string(5000, 'z')}},
                 key);
    const std::string whole = read_bytes(path);
    for (int i = 0; i < 5000; ++i) {
      rewrite(path, mutate(whole));
      ASSERT_NE(refusal(path, key), "") << i;
    }
  }
}

// The index itself is attacked: whatever it says, only members that it names rightly come out.
TEST_F(Bundle, SurvivesMutatedIndexesWithRightChecksums) {
  Mutator mutate;
  const std::string first = seal(Kind::Entry, "ab", "first", ""),
                    second = seal(Kind::Artifact, "cd", "second", "");
  const std::string index = "entry ab " + std::to_string(first.size()) + " " + sha256(first) +
                            "\nartifact cd " + std::to_string(second.size()) + " " + sha256(second) + "\n";
  for (int i = 0; i < 5000; ++i) {
    rewrite(path, forged(mutate(index), first + second));
    ASSERT_NE(refusal(path), "") << i;
  }
}

}  // namespace
}  // namespace tandem::cache
