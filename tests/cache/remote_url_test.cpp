#include "cache/remote_url.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

namespace tandem::cache {
namespace {

struct Good {
  const char* url;
  RemoteAddress means;
  const char* shown;
};

TEST(RemoteUrl, SaysHostPortUserPasswordAndDatabase) {
  const Good table[] = {
      {"redis://cache", {"cache", 6379, "", "", 0}, "cache:6379"},
      {"redis://cache/", {"cache", 6379, "", "", 0}, "cache:6379"},
      {"redis://cache:1", {"cache", 1, "", "", 0}, "cache:1"},
      {"redis://10.0.0.7:65535/15", {"10.0.0.7", 65535, "", "", 15}, "10.0.0.7:65535"},
      {"redis://build-cache.example_1.org/3",
       {"build-cache.example_1.org", 6379, "", "", 3},
       "build-cache.example_1.org:6379"},
      {"redis://me:secret@cache:7000/2", {"cache", 7000, "me", "secret", 2}, "cache:7000"},
      {"redis://:secret@cache", {"cache", 6379, "", "secret", 0}, "cache:6379"},
      {"redis://m%65:a%3Ab%40c%2f%25@cache", {"cache", 6379, "me", "a:b@c/%", 0}, "cache:6379"},
      {"redis://me:a:b@c/d?e#f@cache/1", {"cache", 6379, "me", "a:b@c/d?e#f", 1}, "cache:6379"},
      {"redis://[::1]", {"::1", 6379, "", "", 0}, "[::1]:6379"},
      {"redis://me:secret@[fe80::1:2]:7000/2", {"fe80::1:2", 7000, "me", "secret", 2}, "[fe80::1:2]:7000"},
      {"redis://[::ffff:1.2.3.4]/2147483647",
       {"::ffff:1.2.3.4", 6379, "", "", 2147483647},
       "[::ffff:1.2.3.4]:6379"},
  };
  for (const Good& row : table) {
    SCOPED_TRACE(row.url);
    const RemoteAddress address = parse_remote_url(row.url);
    EXPECT_EQ(address.host, row.means.host);
    EXPECT_EQ(address.port, row.means.port);
    EXPECT_EQ(address.user, row.means.user);
    EXPECT_EQ(address.password, row.means.password);
    EXPECT_EQ(address.database, row.means.database);
    EXPECT_EQ(shown(address), row.shown);
  }
}

struct Bad {
  const char* url;
  const char* part;  ///< of the complaint
};

// "hidden" stands for a password, in its place or in one where a slip of the pen would put it.
TEST(RemoteUrl, IsRefusedWithWhatIsWrongAndNoPartOfItQuoted) {
  const Bad table[] = {
      {"", "does not begin with redis://"},
      {"hidden", "does not begin with redis://"},
      {"redis:/hidden", "does not begin with redis://"},
      {"REDIS://cache", "does not begin with redis://"},
      {"http://:hidden@cache", "does not begin with redis://"},
      {"rediss://:hidden@cache", "TLS"},
      {"redis://", "names no host"},
      {"redis://:hidden@", "names no host"},
      {"redis://:hidden@:6379", "names no host"},
      {"redis:///1", "names no host"},
      {"redis://hidden@cache", "user without a password"},
      {"redis://me:@cache", "empty password"},
      {"redis://me:hidden", "port"},
      {"redis://cache:", "port"},
      {"redis://cache:0", "port"},
      {"redis://cache:65536", "port"},
      {"redis://cache:-1", "port"},
      {"redis://cache:+1", "port"},
      {"redis://cache:99999999999999999999", "port"},
      {"redis://cache:6379x", "port"},
      {"redis://cache:1:2", "more than one colon"},
      {"redis://::1", "more than one colon"},
      {"redis://[::1", "bracket"},
      {"redis://[]", "names no host"},
      {"redis://[::1]x", "port"},
      {"redis://[cache]", "characters"},
      {"redis://ca%63he", "characters"},
      {"redis://cache?db=1", "characters"},
      {"redis://cache#1", "characters"},
      {"redis://cache/hidden", "database"},
      {"redis://cache/-1", "database"},
      {"redis://cache/1/2", "database"},
      {"redis://cache/2147483648", "database"},
      {"redis://cache/1?x", "database"},
      {"redis://me:hid%zzden@cache", "two hexadecimal digits"},
      {"redis://me:hidden%4@cache", "two hexadecimal digits"},
      {"redis://me:hidden%@cache", "two hexadecimal digits"},
      {"redis://me:hid den@cache", "space"},
      {" redis://cache", "does not begin with redis://"},
      {"redis://cache\n", "space"},
      {"redis://\xc3\xa4", "space"},
  };
  for (const Bad& row : table) {
    SCOPED_TRACE(row.url);
    try {
      parse_remote_url(row.url);
      ADD_FAILURE() << "was taken";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(row.part), std::string::npos) << message;
      EXPECT_EQ(message.find("hid"), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace tandem::cache
