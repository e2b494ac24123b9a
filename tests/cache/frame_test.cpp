#include "cache/frame.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "cache/long_form.h"

namespace tandem::cache {
namespace {

constexpr size_t kVersionAt = 8, kKindAt = 12, kEncodingAt = 13, kSignedAt = 14, kZeroAt = 15,
                 kPayloadSizeAt = 16, kStoredSizeAt = 24, kNameSizeAt = 32, kNameAt = 40;
constexpr size_t kDigest = 32;
const std::string kFrameName = "0123456789abcdef";

#ifdef TANDEM_HAVE_ZSTD
constexpr bool kCompresses = true;
#else
constexpr bool kCompresses = false;
#endif

std::string random_bytes(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = char(random());
  return bytes;
}

std::string text(size_t size) {
  std::string result;
  for (size_t i = 0; result.size() < size; ++i)
    result += "node " + std::to_string(i * i % 97) + " = aten::mul(node, node)\n";
  return result;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string with_right_checksum(std::string sealed) {
  sealed.resize(sealed.size() - kDigest);
  return sealed + from_hex(sha256(sealed));
}

template <class T>
std::string with(std::string sealed, size_t place, T value) {
  std::memcpy(sealed.data() + place, &value, sizeof value);
  return sealed;
}

std::string complaint(const std::string& sealed, const std::string& key = "", size_t largest = 1 << 20) {
  const Opened opened = open(Kind::Entry, kFrameName, sealed, key, largest);
  EXPECT_EQ(opened.complaint.empty(), !opened.payload.empty());
  return opened.complaint;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas no: " << part;
}

TEST(Frame, GivesBackWhatWasSealed) {
  for (const std::string& payload : {std::string(), std::string("x"), std::string(1 << 20, 0), text(100'000),
                                     random_bytes(100'000, 1), text(20'000'000)}) {
    for (const Kind kind : {Kind::Entry, Kind::Artifact}) {
      for (const std::string key : {"", "secret"}) {
        const Opened opened = open(kind, kFrameName, seal(kind, kFrameName, payload, key), key);
        EXPECT_EQ(opened.complaint, "");
        EXPECT_TRUE(opened.payload == payload) << payload.size() << " bytes";
      }
    }
  }
}

TEST(Frame, CompressesWhatCanBeCompressed) {
  const std::string sealed = seal(Kind::Entry, kFrameName, text(100'000), "");
  if (!kCompresses) GTEST_SKIP() << "built without zstd";
  EXPECT_LT(sealed.size(), 20'000u);
  EXPECT_LT(seal(Kind::Entry, kFrameName, random_bytes(100'000, 1), "").size(), 100'200u);
}

TEST(Frame, IsTheSameForTheSamePayload) {
  EXPECT_EQ(seal(Kind::Entry, kFrameName, text(1000), "k"), seal(Kind::Entry, kFrameName, text(1000), "k"));
}

TEST(Frame, SaysWhyItRefuses) {
  const std::string sealed = seal(Kind::Entry, kFrameName, text(1000), "");
  expect_contains(complaint(""), "does not begin as Tandem's files do");
  expect_contains(complaint("tandem" + sealed), "does not begin as Tandem's files do");
  expect_contains(complaint(sealed.substr(0, 20)), "was cut short");
  expect_contains(complaint(sealed.substr(0, sealed.size() - 1)), "was cut short");
  expect_contains(complaint(sealed + "x"), "has bytes after its end");
  expect_contains(complaint(with<uint32_t>(sealed, kVersionAt, 7)),
                  "has format version 7, and this build of Tandem reads version 3");
  expect_contains(complaint(with<char>(sealed, kNameAt + kFrameName.size() + 10, '\x55')),
                  "does not match its checksum");
  expect_contains(complaint(seal(Kind::Artifact, kFrameName, text(1000), "")), "is no entry");
  expect_contains(complaint(seal(Kind::Entry, "fedc", text(1000), "")), "was written under another name");
  expect_contains(complaint(sealed, "", 1000), "more than the 1000 allowed");
}

TEST(Frame, SignedIsOpenedWithItsKeyAlone) {
  const std::string sealed = seal(Kind::Entry, kFrameName, text(1000), "ours");
  EXPECT_EQ(complaint(sealed, "ours"), "");
  EXPECT_EQ(complaint(sealed, ""), "") << "who has no key trusts what is whole";
  expect_contains(complaint(sealed, "theirs"), "is signed with another key");
  expect_contains(complaint(seal(Kind::Entry, kFrameName, text(1000), ""), "ours"), "is not signed");
  expect_contains(complaint(seal(Kind::Entry, "fedc", text(1000), "ours"), "ours"),
                  "was written under another name");
  const std::string changed = with<char>(sealed, kNameAt + kFrameName.size() + 10, '\x55');
  expect_contains(complaint(with_right_checksum(changed), "ours"), "is signed with another key");
}

TEST(Frame, WithARightChecksumTheRestIsStillChecked) {
  const std::string plain = seal(Kind::Entry, kFrameName, "x", "");
  const auto refused = [&](const std::string& sealed) { return complaint(with_right_checksum(sealed)); };
  ASSERT_EQ(refused(plain), "");
  expect_contains(refused(with<char>(plain, kKindAt, 9)), "is no entry");
  expect_contains(refused(with<char>(plain, kZeroAt, 1)), "flags");
  expect_contains(refused(with<char>(plain, kEncodingAt, 2)), "flags");
  expect_contains(refused(with<char>(plain, kEncodingAt, 1)),
                  kCompresses ? "cannot be decompressed" : "which this build of Tandem was made without");
  expect_contains(refused(with<char>(plain, kSignedAt, 1)), "was cut short");
  expect_contains(refused(with<uint64_t>(plain, kPayloadSizeAt, 2)),
                  "does not have the size that it declares");
  expect_contains(refused(with<uint64_t>(plain, kPayloadSizeAt, ~uint64_t(0))), "allowed");
  for (const size_t place : {kStoredSizeAt, kNameSizeAt}) {
    for (const uint64_t size : {uint64_t(1000), uint64_t(1) << 32, ~uint64_t(0), ~uint64_t(0) - 40})
      expect_contains(refused(with<uint64_t>(plain, place, size)), "was cut short");
  }
}

TEST(Frame, SizesThatLieCostNothing) {
  const std::string payload = text(100'000), sealed = seal(Kind::Entry, kFrameName, payload, "");
  if (!kCompresses) GTEST_SKIP() << "built without zstd";
  const auto peak_kilobytes = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kilobytes();
  for (const uint64_t size :
       {uint64_t(payload.size() - 1), uint64_t(payload.size() + 1), uint64_t(0), uint64_t(4) << 30}) {
    expect_contains(
        complaint(with_right_checksum(with<uint64_t>(sealed, kPayloadSizeAt, size)), "", size_t(8) << 30),
        "does not have the size that it declares");
  }
  EXPECT_LT(peak_kilobytes() - before, 64 << 10);
}

/// Always another string than the one given.
std::string mutate(const std::string& sealed, std::mt19937& random) {
  const auto below = [&](size_t bound) { return size_t(random() % bound); };
  const std::function<void(std::string&)> mutations[] = {
      [&](std::string& bytes) { bytes[below(bytes.size())] ^= char(1 << below(8)); },
      [&](std::string& bytes) {
        for (size_t count = 1 + below(8); count > 0; --count)
          bytes[below(bytes.size())] ^= char(1 << below(8));
      },
      [&](std::string& bytes) { bytes.resize(below(bytes.size())); },
      [&](std::string& bytes) { bytes.insert(below(bytes.size()), random_bytes(1 + below(40), random())); },
      [&](std::string& bytes) { bytes.erase(below(bytes.size()), 1 + below(40)); },
      [&](std::string& bytes) { std::swap(bytes[below(bytes.size())], bytes[below(bytes.size())]); },
      [&](std::string& bytes) {
        std::swap_ranges(bytes.begin(), bytes.begin() + 16,
                         bytes.begin() + 16 + long(below(bytes.size() - 32)));
      },
      [&](std::string& bytes) { bytes = with<uint32_t>(bytes, kVersionAt, uint32_t(random())); },
      [&](std::string& bytes) {
        bytes = with<uint64_t>(bytes, std::vector{kPayloadSizeAt, kStoredSizeAt, kNameSizeAt}[below(3)],
                               uint64_t(random()) << below(33));
      },
      [&](std::string& bytes) { bytes = with<char>(bytes, kKindAt + below(4), char(below(4))); },
  };
  while (true) {
    std::string bytes = sealed;
    mutations[below(std::size(mutations))](bytes);
    if (bytes != sealed) return bytes;
  }
}

TEST(Frame, MutatedIsNeverAccepted) {
  std::mt19937 random(7);
  for (const std::string key : {"", "secret"}) {
    for (const std::string& payload : {text(2000), random_bytes(200, 3), std::string()}) {
      const std::string sealed = seal(Kind::Entry, kFrameName, payload, key);
      for (int i = in_long_form(170'000, 4'000); i > 0; --i)
        ASSERT_NE(open(Kind::Entry, kFrameName, mutate(sealed, random), key).complaint, "")
            << "mutation " << i;
    }
  }
}

TEST(Frame, MutatedWithARightChecksumIsNeverAcceptedWhenSigned) {
  std::mt19937 random(8);
  const std::string sealed = seal(Kind::Entry, kFrameName, text(2000), "secret");
  for (int i = in_long_form(500'000, 10'000); i > 0; --i) {
    std::string mutated = mutate(sealed, random);
    if (mutated.size() < kDigest) continue;
    mutated = with_right_checksum(mutated);
    if (mutated == sealed) continue;  // the checksum was all that was changed
    ASSERT_NE(open(Kind::Entry, kFrameName, mutated, "secret").complaint, "") << "mutation " << i;
  }
}

TEST(Frame, MutatedWithARightChecksumStaysWithinWhatIsAllowed) {
  std::mt19937 random(9);
  size_t accepted = 0;
  const std::string sealed = seal(Kind::Entry, kFrameName, text(2000), "");
  for (int i = in_long_form(500'000, 10'000); i > 0; --i) {
    const std::string mutated = mutate(sealed, random);
    if (mutated.size() < kDigest) continue;
    const Opened opened = open(Kind::Entry, kFrameName, with_right_checksum(mutated), "", 4000);
    ASSERT_LE(opened.payload.size(), 4000u);
    accepted += opened.complaint.empty();
  }
  EXPECT_GT(accepted, 0u) << "some mutations must get as far as the payload";
}

TEST(Frame, Sha256IsTheStandardOne) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace tandem::cache
