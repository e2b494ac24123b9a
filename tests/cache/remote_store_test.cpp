#include <tandem/compiled.h>
#include <tandem/error.h>

#include "base/counters.h"
#include "cache/remote_fixture.h"

namespace tandem::cache {
namespace {

#ifndef TANDEM_HAVE_HIREDIS
TEST(RemoteStore, SaysThatTandemWasBuiltWithoutHiredis) {
  try {
    RemoteStore store("redis://127.0.0.1", "tandem", "");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("built without hiredis"), std::string::npos) << error.what();
  }
}
#endif

using Remote = RedisTest;

TEST_F(Remote, GivesAnotherMachineWhatOnePut) {
  RedisServer server;
  reset_counters();
  RemoteStore writer(server.url(), "tandem", "", patient()), reader(server.url(), "tandem", "", patient());
  EXPECT_EQ(reader.get(Kind::Entry, entry).state, State::Absent);
  const std::string large = noise(5 << 20), zeros("\0\r\n\0", 4);
  writer.put(Kind::Entry, entry, zeros);
  writer.put(Kind::Artifact, entry, large);
  writer.put(Kind::Artifact, other, "");
  ASSERT_TRUE(writer.flush(20s));
  EXPECT_EQ(writer.stats().stored, 3u);

  const Fetched found = reader.get(Kind::Entry, entry);
  EXPECT_EQ(found.state, State::Found);
  EXPECT_EQ(found.payload, zeros);
  EXPECT_EQ(reader.get(Kind::Artifact, entry).payload, large);
  EXPECT_EQ(reader.get(Kind::Artifact, other).state, State::Found);
  EXPECT_EQ(reader.get(Kind::Entry, other).state, State::Absent);

  const RemoteStats stats = reader.stats();
  EXPECT_EQ(stats.hits, 3u);
  EXPECT_EQ(stats.misses, 2u);
  EXPECT_EQ(stats.errors + stats.skipped + stats.stored + stats.dropped, 0u);
  EXPECT_EQ(counters()["cache_remote_hit"], 1u) << "artifacts are not lookups";
  EXPECT_EQ(counters()["cache_remote_miss"], 2u);
  EXPECT_EQ(counters()["cache_remote_error"], 0u);
}

TEST_F(Remote, LaterPutsWin) {
  RedisServer server;
  RemoteStore store(server.url(), "tandem", "", patient());
  for (int i = 0; i < 100; ++i) store.put(Kind::Entry, entry, "version " + std::to_string(i));
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "version 99");
}

TEST_F(Remote, GetsManyInOneGoAndTakesItsTimeOffThePatience) {
  RedisServer server;
  RemoteStore store(server.url(), "tandem", "", patient());
  for (int i = 0; i < 50; i += 2) store.put(Kind::Artifact, std::to_string(i), "part " + std::to_string(i));
  ASSERT_TRUE(store.flush(20s));
  std::vector<RemoteStore::Wanted> wanted;
  for (int i = 0; i < 50; ++i) wanted.push_back({Kind::Artifact, std::to_string(i)});
  Patience patience = store.patience();
  const std::vector<Fetched> found = store.get_many(wanted, patience);
  ASSERT_EQ(found.size(), 50u);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(found[i].state, i % 2 ? State::Absent : State::Found);
    EXPECT_EQ(found[i].payload, i % 2 ? "" : "part " + std::to_string(i));
  }
  EXPECT_LT(patience.left, store.patience().left);
  EXPECT_GT(patience.left, 0s);
  const auto left = patience.left;
  EXPECT_TRUE(store.get_many({}, patience).empty());
  EXPECT_EQ(patience.left, left);
}

TEST_F(Remote, KeepsNamespacesAndDatabasesApart) {
  RedisServer server;
  RemoteStore here(server.url(), "here", "", patient()), there(server.url(), "there", "", patient()),
      third(server.url({}, "/3"), "here", "", patient());
  here.put(Kind::Entry, entry, "here");
  third.put(Kind::Entry, entry, "third");
  ASSERT_TRUE(here.flush(20s) && third.flush(20s));
  EXPECT_EQ(here.get(Kind::Entry, entry).payload, "here");
  EXPECT_EQ(there.get(Kind::Entry, entry).state, State::Absent);
  EXPECT_EQ(third.get(Kind::Entry, entry).payload, "third");
  const std::string key = "here:" + std::to_string(format_version) + ":entry:" + entry;
  EXPECT_EQ(server.ask({"GET", key}).kind, RedisReply::Kind::Bytes);
  EXPECT_NE(server.ask({"GET", key}).text, server.ask({"GET", key}, 3).text);
}

TEST_F(Remote, GivesPasswordAndUser) {
  RedisServer server({.password = "p@ss/word"});
  ASSERT_EQ(server.ask({"ACL", "SETUSER", "me", "on", ">mine", "~*", "+@all"}).kind, RedisReply::Kind::Done);
  RemoteStore store(server.url(":p%40ss%2fword@"), "tandem", "", patient()),
      mine(server.url("me:mine@", "/2"), "tandem", "", patient());
  store.put(Kind::Entry, entry, "one");
  mine.put(Kind::Entry, entry, "two");
  ASSERT_TRUE(store.flush(20s) && mine.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "one");
  EXPECT_EQ(mine.get(Kind::Entry, entry).payload, "two");
}

TEST_F(Remote, SpeaksOverIPv6) {
  RedisServer server;
  RemoteStore store("redis://[::1]:" + std::to_string(server.port()), "tandem", "", patient());
  store.put(Kind::Entry, entry, "six");
  ASSERT_TRUE(store.flush(20s));
  if (store.stats().stored == 0) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "six");
}

TEST_F(Remote, WritesWhatIsLeftWhenItGoes) {
  RedisServer server;
  {
    RemoteStore store(server.url(), "tandem", "", patient());
    for (int i = 0; i < 20; ++i) store.put(Kind::Artifact, std::to_string(i), noise(10000));
  }
  EXPECT_EQ(RemoteStore(server.url(), "tandem", "", patient()).get(Kind::Artifact, "19").state, State::Found);
}

TEST_F(Remote, ServesManyThreads) {
  RedisServer server;
  RemoteStore store(server.url(), "tandem", "key", patient());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::string name = std::to_string(t * 1000 + i);
        store.put(Kind::Artifact, name, "of " + name);
        Patience patience = store.patience();
        const auto found = store.get_many({{Kind::Artifact, name},
                                           {Kind::Artifact, std::to_string((t + 1) % 4 * 1000 + i)},
                                           {Kind::Entry, "00"}},
                                          patience);
        wrong += found[0].state == State::Found && found[0].payload != "of " + name;
        wrong += found[1].state == State::Damaged;
        wrong += found[2].state != State::Absent;
        if (i % 10 == 0) store.stats();
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(wrong, 0);
  const RemoteStats stats = store.stats();
  EXPECT_EQ(stats.stored, 400u);
  EXPECT_EQ(stats.hits + stats.misses, 1200u);
  EXPECT_EQ(stats.errors + stats.skipped + stats.dropped, 0u);
  for (int t = 0; t < 4; ++t)
    EXPECT_EQ(store.get(Kind::Artifact, std::to_string(t * 1000 + 99)).payload,
              "of " + std::to_string(t * 1000 + 99));
}

TEST_F(Remote, WorksOnInAChildMadeByFork) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not allow a child made by fork to have threads";
#endif
  RedisServer server;
  RemoteStore store(server.url(), "tandem", "", patient());
  store.put(Kind::Entry, entry, "parent");
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "parent");
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    // so that the writing thread is busy when the child is made
    store.put(Kind::Artifact, other, noise(1 << 20));
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      store.put(Kind::Entry, std::to_string(i), "child");
      const bool good = store.flush(20s) && store.get(Kind::Entry, std::to_string(i)).payload == "child" &&
                        store.get(Kind::Entry, entry).payload == "parent";
      if (i % 2) store.~RemoteStore();
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
    EXPECT_EQ(store.get(Kind::Entry, entry).payload, "parent");
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "parent");
  EXPECT_EQ(store.get(Kind::Entry, "0").payload, "child");
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.stats().errors, 0u);
}

TEST_F(Remote, LetsAChildMadeByForkEndWithoutUsingIt) {
  RedisServer server;
  RemoteLimits limits = patient();
  // longer than the child may live: it must not wait for threads that it does not have
  limits.farewell = 100s;
  RemoteStore store(server.url(), "tandem", "", limits);
  store.put(Kind::Entry, entry, "parent");
  ASSERT_TRUE(store.flush(20s));
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    store.~RemoteStore();
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "parent");
}

TEST_F(Remote, ATransferHasALimitOfItsOwn) {
  RedisServer server;
  RemoteLimits limits = patient();
  limits.transfer = 0ms;
  const std::string code = noise(size_t(16) << 20);
  RemoteStore store(server.url(), "tandem", "", patient()), hasty(server.url(), "tandem", "", limits);
  store.put(Kind::Artifact, entry, code);
  ASSERT_TRUE(store.flush(20s));
  Patience patience = store.patience();
  EXPECT_EQ(store.get_many({{Kind::Artifact, entry}}, patience).front().payload, code);
  EXPECT_LT(patience.transfer, store.patience().transfer);
  EXPECT_EQ(hasty.get(Kind::Artifact, entry).state, State::Absent);
  EXPECT_EQ(hasty.stats().errors, 1u);
}

TEST_F(Remote, LeavesOutWhatIsTooLarge) {
  RedisServer server;
  RemoteLimits limits = patient();
  limits.largest = 1000;
  RemoteStore store(server.url(), "tandem", "", limits), roomy(server.url(), "tandem", "", patient());
  store.put(Kind::Artifact, entry, std::string(1001, 'x'));
  store.put(Kind::Artifact, other, noise(1000));
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.stats().dropped, 1u);
  EXPECT_EQ(store.stats().stored, 1u);
  EXPECT_EQ(store.get(Kind::Artifact, other).payload, noise(1000));
  roomy.put(Kind::Artifact, entry, std::string(1001, 'x'));
  roomy.put(Kind::Artifact, other, noise(1 << 20));
  ASSERT_TRUE(roomy.flush(20s));
  const Fetched refused = store.get(Kind::Artifact, entry);
  EXPECT_EQ(refused.state, State::Damaged);
  EXPECT_NE(refused.complaint.find("1000"), std::string::npos) << refused.complaint;
  EXPECT_EQ(store.get(Kind::Artifact, other).state, State::Absent);
  EXPECT_EQ(store.stats().errors, 2u);
}

}  // namespace
}  // namespace tandem::cache
