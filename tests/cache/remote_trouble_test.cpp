// The remote cache when its server is away, slow or full: whoever asks goes on, soon, and every case is
// counted.
#include <dlfcn.h>
#include <netdb.h>
#include <tandem/compiled.h>

#include "base/counters.h"
#include "cache/remote_fixture.h"

namespace {

constexpr const char* unanswered_host = "unanswered.invalid";
std::atomic<int> asked_name_server = 0;
std::atomic<bool> name_server_answers = false;

}  // namespace

// Stands before the one of the C library, so that there is a host whose name server takes as long as a test
// wants.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  static const auto next = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host && std::string_view(host) == unanswered_host) {
    ++asked_name_server;
    while (!name_server_answers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return EAI_NONAME;
  }
  return next(host, service, hints, found);
}

namespace tandem::cache {
namespace {

using RemoteTrouble = RedisTest;

TEST_F(RemoteTrouble, PausesGrowFromOneSecondToSixty) {
  SilentPort nobody(false);
  HandClock clock;
  RemoteStore store(url_of(nobody.port()), "tandem", "", clock.limits());
  EXPECT_EQ(RemoteLimits().wait, 50ms);
  uint64_t errors = 0, skipped = 0;
  for (auto pause : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s, 60s}) {
    EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
    EXPECT_EQ(store.stats().errors, ++errors);
    clock.advance(pause - 1ms);
    EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
    EXPECT_EQ(store.stats().errors, errors);
    EXPECT_EQ(store.stats().skipped, ++skipped);
    clock.advance(1ms);
  }
}

TEST_F(RemoteTrouble, ServerThatIsDownFirstAndComesLater) {
  RedisServer server;
  server.stop();
  HandClock clock;
  reset_counters();
  RemoteStore store(server.url(), "tandem", "", clock.limits());
  EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
  EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
  store.put(Kind::Entry, entry, "lost");
  ASSERT_TRUE(store.flush(20s));
  store.put(Kind::Entry, entry, "lost too");
  RemoteStats stats = store.stats();
  EXPECT_EQ(stats.errors, 2u) << "one of reading, one of writing";
  EXPECT_EQ(stats.skipped, 1u);
  EXPECT_EQ(stats.dropped, 1u);
  EXPECT_EQ(stats.stored, 0u);
  EXPECT_EQ(counters()["cache_remote_error"], 2u);
  EXPECT_EQ(counters()["cache_remote_miss"], 0u) << "nobody was asked";

  server.start();
  EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
  EXPECT_EQ(store.stats().skipped, 2u) << "the pause is not over";
  clock.advance(1s);
  store.put(Kind::Entry, entry, "kept");
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "kept");
  stats = store.stats();
  EXPECT_EQ(stats.errors, 2u);
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.stored, 1u);
}

TEST_F(RemoteTrouble, ServerThatDiesInBetweenAndComesBack) {
  RedisServer server;
  HandClock clock;
  RemoteStore store(server.url(), "tandem", "", clock.limits());
  store.put(Kind::Entry, entry, "first");
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "first");
  server.stop();
  EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
  EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
  store.put(Kind::Entry, entry, "second");
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.stats().errors, 2u);
  EXPECT_EQ(store.stats().skipped, 1u);
  server.start();
  clock.advance(1s);
  EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
  EXPECT_EQ(store.stats().misses, 1u) << "it keeps nothing when it dies";
  store.put(Kind::Entry, entry, "third");
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "third");
  EXPECT_EQ(store.stats().errors, 2u);
}

TEST_F(RemoteTrouble, ServerThatClosedIdleConnectionsIsAskedAgainAtOnce) {
  RedisServer server;
  RemoteStore store(server.url(), "tandem", "", HandClock().limits());
  store.put(Kind::Entry, entry, "first");
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "first");
  server.ask({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "first");
  store.put(Kind::Entry, entry, "second");
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "second");
  EXPECT_EQ(store.stats().errors + store.stats().skipped + store.stats().dropped, 0u);
}

TEST_F(RemoteTrouble, FrozenServerCostsOneShortWait) {
  RedisServer server;
  HandClock clock;
  RemoteStore store(server.url(), "tandem", "", clock.short_limits());
  server.freeze();
  Patience patience = store.patience();
  expect_soon(
      [&] { EXPECT_EQ(store.get_many({{Kind::Entry, entry}}, patience).front().state, State::Absent); });
  EXPECT_LE(patience.left, 0ms);
  EXPECT_EQ(store.stats().errors, 1u);
  expect_soon([&] {
    for (int i = 0; i < 1000; ++i) store.get(Kind::Entry, entry);
    for (int i = 0; i < 1000; ++i) store.put(Kind::Entry, entry, "x");
  });
  EXPECT_EQ(store.stats().errors, 1u);
  EXPECT_EQ(store.stats().skipped, 1000u);

  server.thaw();
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.stats().stored, 1000u);
  Fetched found;
  for (int i = 0; i < 100 && found.state != State::Found; ++i) {
    clock.advance(60s);
    found = store.get(Kind::Entry, entry);
  }
  EXPECT_EQ(found.payload, "x");

  const uint64_t before = store.stats().errors;
  server.freeze();
  expect_soon([&] {
    EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent) << "over a connection that was good before";
  });
  expect_soon([&] { store.get(Kind::Entry, entry); });
  EXPECT_EQ(store.stats().errors, before + 1);
}

TEST_F(RemoteTrouble, FrozenServerCostsFourThreadsOneShortWaitEach) {
  RedisServer server;
  RemoteStore store(server.url(), "tandem", "", HandClock().short_limits());
  server.freeze();
  expect_soon(
      [&] {
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t)
          threads.emplace_back([&] {
            for (int i = 0; i < 100; ++i) EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent);
          });
        for (std::thread& thread : threads) thread.join();
      },
      3s);
  const RemoteStats stats = store.stats();
  EXPECT_GE(stats.errors, 1u);
  EXPECT_LE(stats.errors, 4u);
  EXPECT_EQ(stats.errors + stats.skipped, 400u);
}

TEST_F(RemoteTrouble, FrozenServerHoldsUpNeitherPutsNorTheEnd) {
  RedisServer server;
  server.freeze();
  expect_soon(
      [&] {
        RemoteStore store(server.url(), "tandem", "", HandClock().limits());
        const std::string large = noise(1 << 16);
        expect_soon([&] {
          for (int i = 0; i < 100; ++i) store.put(Kind::Artifact, std::to_string(i), large);
        });
        EXPECT_FALSE(store.flush(10ms));
      },
      3s);
}

TEST_F(RemoteTrouble, ServerThatDiesWhileAValueIsWritten) {
  RedisServer server;
  RemoteStore store(server.url(), "tandem", "", HandClock().limits());
  const std::string large = noise(48 << 20);
  store.put(Kind::Entry, entry, "x");
  ASSERT_TRUE(store.flush(20s));
  server.freeze();
  store.put(Kind::Artifact, entry, large);
  EXPECT_FALSE(store.flush(500ms));
  server.stop();
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.stats().errors, 1u);
  EXPECT_EQ(store.stats().stored, 1u);
}

TEST_F(RemoteTrouble, FullServerIsStillRead) {
  RedisServer server({.memory = "2mb"});
  HandClock clock;
  RemoteStore store(server.url(), "tandem", "", clock.limits());
  const std::string large = noise(4 << 20);
  for (const std::string& payload : {std::string("fits"), large, std::string("in the pause")}) {
    store.put(Kind::Entry, entry, payload);
    ASSERT_TRUE(store.flush(20s));
  }
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, "fits");
  clock.advance(1s);
  store.put(Kind::Entry, entry, large);
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, other).state, State::Absent);
  const RemoteStats stats = store.stats();
  EXPECT_EQ(stats.stored, 1u);
  EXPECT_EQ(stats.errors, 2u);
  EXPECT_EQ(stats.dropped, 1u);
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.skipped, 0u);

  server.ask({"CONFIG", "SET", "maxmemory", "100mb"});
  clock.advance(2s);
  store.put(Kind::Entry, entry, large);
  ASSERT_TRUE(store.flush(20s));
  EXPECT_EQ(store.get(Kind::Entry, entry).payload, large);
}

TEST_F(RemoteTrouble, HostThatDoesNotResolve) {
  expect_soon(
      [] {
        RemoteStore store("redis://no-such-host.invalid", "tandem", "", HandClock().short_limits());
        expect_soon([&] { EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent); });
        expect_soon([&] { EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent); });
        EXPECT_EQ(store.stats().errors, 1u);
        EXPECT_EQ(store.stats().skipped, 1u);
        expect_soon([&] { store.put(Kind::Entry, entry, "x"); });
      },
      5s);
}

TEST_F(RemoteTrouble, NameServerThatNeverAnswers) {
  HandClock clock;
  RemoteLimits limits = clock.short_limits();
  limits.farewell = 10ms;
  expect_soon(
      [&] {
        RemoteStore store("redis://" + std::string(unanswered_host), "tandem", "", limits);
        for (uint64_t i = 1; i <= 3; ++i) {
          expect_soon([&] { EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent); });
          EXPECT_EQ(store.stats().errors, i);
          expect_soon([&] { EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent); });
          EXPECT_EQ(store.stats().skipped, i);
          clock.advance(60s);
        }
      },
      5s);
  EXPECT_EQ(asked_name_server, 1) << "the program's own getaddrinfo was not the one in use";
  name_server_answers = true;
}

TEST_F(RemoteTrouble, PortThatAcceptsAndNeverAnswers) {
  SilentPort silent;
  HandClock clock;
  RemoteLimits limits = clock.short_limits();
  limits.write = 50ms;
  for (const char* login : {"", ":hidden@"}) {
    RemoteStore store("redis://" + std::string(login) + "127.0.0.1:" + std::to_string(silent.port()),
                      "tandem", "", limits);
    expect_soon([&] { EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent); });
    expect_soon([&] { EXPECT_EQ(store.get(Kind::Entry, entry).state, State::Absent); });
    store.put(Kind::Entry, entry, "x");
    EXPECT_TRUE(store.flush(20s));
    EXPECT_EQ(store.stats().errors, 2u);
    EXPECT_EQ(store.stats().skipped, 1u);
  }
}

}  // namespace
}  // namespace tandem::cache
