// The remote cache when what its server says or holds cannot be used: it is refused, and every case is
// counted.
#include <algorithm>

#include "cache/remote_fixture.h"
#include "cache/talking_port.h"

namespace tandem::cache {
namespace {

using RemoteJunk = RedisTest;

TEST_F(RemoteJunk, WrongPasswordIsSaidOnceAndNeverShown) {
  RedisServer server({.password = "right"});
  testing::internal::CaptureStderr();
  for (const char* login : {":hidden@", "me:hidden@", ""}) {
    SCOPED_TRACE(login);
    RemoteStore store(server.url(login), "tandem", "", HandClock().limits());
    EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
    EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
    store.put(Kind::Entry, entry, "x");
    ASSERT_TRUE(store.flush(20s));
    EXPECT_EQ(store.stats().errors, 2u);
    EXPECT_EQ(store.stats().skipped, 1u);
  }
  {
    TalkingPort echo("-ERR unknown command `AUTH`, with args beginning with: `hidden`\r\n");
    RemoteStore store("redis://:hidden@127.0.0.1:" + std::to_string(echo.port()), "tandem", "",
                      HandClock().limits());
    EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
    EXPECT_EQ(store.stats().errors, 1u);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("refused the user or the password"), std::string::npos) << said;
  EXPECT_NE(said.find("(NOAUTH)"), std::string::npos) << said;
  EXPECT_EQ(said.find("hidden"), std::string::npos) << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 4) << said;
}

TEST_F(RemoteJunk, DatabaseThatIsNotThere) {
  RedisServer server;
  RemoteStore store(server.url({}, "/4000"), "tandem", "", HandClock().limits());
  EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
  EXPECT_EQ(store.stats().errors, 1u);
}

TEST_F(RemoteJunk, JunkUnderTheKeyIsRefused) {
  RedisServer server;
  RemoteStore store(server.url(), "tandem", "", HandClock().limits());
  const std::string good = seal(Kind::Entry, entry, "payload", "");
  std::string flipped = good;
  flipped[flipped.size() / 2] ^= 1;
  uint64_t errors = 0;
  for (const std::string& junk :
       {std::string(), std::string("junk"), std::string(1 << 20, '\0'), flipped,
        good.substr(0, good.size() - 1), good + "x", seal(Kind::Entry, other, "payload", ""),
        seal(Kind::Artifact, entry, "payload", "")}) {
    ASSERT_EQ(server.ask({"SET", entry_key, junk}).kind, RedisReply::Kind::Done);
    const Fetched fetched = store.get(Kind::Entry, entry);
    EXPECT_EQ(fetched.state, State::Damaged);
    EXPECT_FALSE(fetched.complaint.empty());
    EXPECT_TRUE(fetched.payload.empty());
    EXPECT_EQ(store.stats().errors, ++errors);
  }
  server.ask({"DEL", entry_key});
  server.ask({"RPUSH", entry_key, "a", "list"});
  EXPECT_EQ(store.get(Kind::Entry, entry).complaint, "is no string");
  EXPECT_EQ(store.stats().errors, ++errors);
  EXPECT_EQ(store.stats().skipped, 0u) << "the server itself is good";
  store.put(Kind::Entry, entry, "replaced");
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "replaced");
}

TEST_F(RemoteJunk, WhatOthersSignedOrNobodyDidIsRefused) {
  RedisServer server;
  RemoteStore ours(server.url(), "tandem", "our key", HandClock().limits()),
      theirs(server.url(), "tandem", "their key", HandClock().limits()),
      unsigned_one(server.url(), "tandem", "", HandClock().limits());
  for (RemoteStore* stranger : {&theirs, &unsigned_one}) {
    stranger->put(Kind::Entry, entry, "strange");
    ASSERT_TRUE(stranger->flush(20s));
    const Fetched fetched = ours.get(Kind::Entry, entry);
    EXPECT_EQ(fetched.state, State::Damaged);
    EXPECT_NE(fetched.complaint.find("signed"), std::string::npos) << fetched.complaint;
  }
  ours.put(Kind::Entry, entry, "ours");
  ours.put(Kind::Entry, other, "another of ours");
  ASSERT_TRUE(ours.flush(20s));
  EXPECT_EQ(ours.get(Kind::Entry, entry).payload, "ours");
  server.ask({"RENAME", "tandem:" + std::to_string(format_version) + ":entry:" + other, entry_key});
  EXPECT_EQ(ours.get(Kind::Entry, entry).state, State::Damaged) << "signed, and moved to another name";
  EXPECT_EQ(ours.stats().errors, 3u);
}

TEST_F(RemoteJunk, PortThatSpeaksSomethingElse) {
  struct Case {
    std::string bytes;
    State state;
    std::chrono::milliseconds wait = 20s;
  };
  const Case table[] = {
      {"HTTP/1.1 400 Bad Request\r\n\r\n", State::Absent},
      {"SSH-2.0-OpenSSH_9.2\r\n", State::Absent},
      {std::string(100, '\0'), State::Absent},
      {"$-7\r\n", State::Absent},
      {"$4\r\nab", State::Absent, 50ms},
      {"$99999999999999\r\nab", State::Absent, 50ms},
      {"*3\r\n:1\r\n:2\r\n:3\r\n", State::Absent},
      {"-LOADING Redis is loading the dataset in memory\r\n", State::Absent},
      {"-\r\n", State::Absent},
      {"+OK\r\n", State::Damaged},
      {":7\r\n", State::Damaged},
      {"$4\r\njunk\r\n", State::Damaged},
  };
  RemoteLimits limits = HandClock().limits();
  for (const Case& row : table) {
    SCOPED_TRACE(row.bytes);
    limits.wait = limits.transfer = row.wait;
    TalkingPort talker(row.bytes);
    RemoteStore store(url_of(talker.port()), "tandem", "", limits);
    EXPECT_EQ(store.get(Kind::Entry, entry).state, row.state);
    EXPECT_EQ(store.stats().errors, 1u);
    if (row.state == State::Absent) store.get(Kind::Entry, entry);
    EXPECT_EQ(store.stats().skipped, row.state == State::Absent ? 1u : 0u);
  }
}

TEST_F(RemoteJunk, ServerThatSendsAByteNowAndThenIsLeft) {
  TalkingPort slow("$1000000\r\n" + std::string(100000, 'x'), 5ms);
  RemoteLimits limits = HandClock().short_limits();
  RemoteStore store(url_of(slow.port()), "tandem", "", limits);
  expect_soon([&] { EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent); });
  EXPECT_TRUE(store.flush(2s)) << "by the thread that reads, too";
  EXPECT_EQ(store.stats().errors, 1u);
}

TEST_F(RemoteJunk, AnAnswerThatBeganMayTakeLongerThanItsBeginning) {
  const std::string sealed = seal(Kind::Entry, entry, "payload", "");
  TalkingPort slow("$" + std::to_string(sealed.size()) + "\r\n" + sealed + "\r\n", 20ms);
  RemoteLimits limits = HandClock().limits();
  limits.wait = 20ms * (sealed.size() / 2);
  RemoteStore store(url_of(slow.port()), "tandem", "", limits);
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "payload");
  EXPECT_EQ(store.stats().errors, 0u);
}

}  // namespace
}  // namespace tandem::cache
