// The folder and a Redis server together, as a compile meets them.
#include "cache/levels.h"
#include "cache/processes.h"
#include "cache/redis_server.h"
#include "cache/talking_port.h"

namespace tandem::test {
namespace {

using namespace std::chrono_literals;

struct RemoteRows : Processes {
  void SetUp() override {
    Processes::SetUp();
    if (!cache::has_redis_server()) GTEST_SKIP() << "redis-server is not installed";
#ifndef TANDEM_HAVE_HIREDIS
    GTEST_SKIP() << "built without hiredis";
#endif
    // A busy machine is no slow server.
    cache::remote_limits().wait = 20s;
  }
  void TearDown() override {
    cache::remote_limits() = {};
    Processes::TearDown();
  }

  /// Of a machine that has this folder.
  Options on(const std::string& machine, const std::string& url) const {
    Options options;
    options.cache.directory = folder.path() / machine;
    options.cache.remote = url;
    return options;
  }
  static std::string values_on(cache::RedisServer& server) {
    return server.ask({"EVAL", "return tostring(redis.call('dbsize'))", "0"}).text;
  }
  static void flush(const Options& options) { EXPECT_TRUE(cache::levels_for(options.cache)->flush(20s)); }
};

const Callable fn = [](const Tensors& in) { return Tensors{in[0].sin() * 3}; };
void expect_right(const Options& options) {
  const Tensors inputs{torch::rand(4).requires_grad_()};
  expect_same(train(Compiled(fn, options), inputs), train(fn, inputs));
}

TEST_F(RemoteRows, M43_OneMachineCompilesForAll) {
  cache::RedisServer server;
  const Options first = on("0", server.url());
  Compiled(fn, first)({leaf({1, 2, 3, 4})});
  flush(first);
  EXPECT_EQ(values_on(server), "0") << "it has no backward yet";
  expect_right(first);
  EXPECT_COUNTERS(0u, 2u, 1u);
  EXPECT_EQ(counter("cache_remote_miss"), 2u);
  flush(first);
  const std::string values = values_on(server);
  for (const char* machine : {"1", "2", "3"}) {
    next_process();
    Options other = on(machine, server.url());
    other.cache.strict = true;
    expect_right(other);
    EXPECT_COUNTERS(1u, 0u, 0u);
    EXPECT_EQ(counter("cache_remote_hit"), 1u);
    expect_only_traced();
  }
  EXPECT_EQ(values_on(server), values);
  next_process();
  Options elsewhere = on("4", server.url());
  elsewhere.cache.remote_namespace = "others";
  expect_right(elsewhere);
  EXPECT_COUNTERS(0u, 1u, 1u);
}

TEST_F(RemoteRows, M44_TheFolderIsAskedFirst) {
  cache::RedisServer server;
  const Options here = on("0", server.url()), there = on("1", server.url());
  expect_right(here);
  EXPECT_EQ(counter("cache_remote_miss"), 1u);
  flush(here);
  next_process();
  expect_right(here);
  EXPECT_COUNTERS(1u, 0u, 0u);
  EXPECT_EQ(counter("cache_remote_hit") + counter("cache_remote_miss"), 0u);
  next_process();
  expect_right(there);
  EXPECT_EQ(counter("cache_remote_hit"), 1u);
  next_process();
  expect_right(there);
  EXPECT_COUNTERS(1u, 0u, 0u);
  EXPECT_EQ(counter("cache_remote_hit"), 0u) << "it is in the folder by now";
}

TEST_F(RemoteRows, M16_TheServerStandsInForADamagedFolder) {
  cache::RedisServer server;
  const Options here = on("cache", server.url());
  expect_right(here);
  flush(here);
  write_bytes(files("entries").at(0), "nonsense");
  next_process();
  expect_right(here);
  EXPECT_EQ(counter("cache_corrupt"), 1u);
  EXPECT_COUNTERS(1u, 0u, 0u);
  std::filesystem::remove(files("artifacts").at(0));
  next_process();
  expect_right(here);
  EXPECT_EQ(counter("cache_unfit"), 1u);
  EXPECT_EQ(counter("cache_remote_hit"), 1u);
  EXPECT_COUNTERS(1u, 0u, 0u);
  next_process();
  expect_right(here);
  EXPECT_EQ(counter("cache_unfit") + counter("cache_remote_hit"), 0u) << "the folder is whole again";
}

TEST_F(RemoteRows, EntriesWithoutAllTheirCodeAreNotTaken) {
  cache::RedisServer server;
  const Options here = on("0", server.url());
  expect_right(here);
  flush(here);
  server.ask({"EVAL",
              "for _, k in ipairs(redis.call('keys', '*:artifact:*')) do redis.call('del', k) end return '0'",
              "0"});
  next_process();
  Options there = on("1", server.url());
  there.cache.strict = true;
  expect_right(there);
  EXPECT_COUNTERS(0u, 1u, 1u);
}

TEST_F(RemoteRows, TroubleWithTheServerIsNoMatterOfStrictness) {
  cache::remote_limits() = {};
  cache::RedisServer server;
  const cache::SilentPort closed(false), silent;
  const cache::TalkingPort babbling("$-7\r\nI am no Redis\r\n");
  auto url = [](uint16_t port) { return "redis://127.0.0.1:" + std::to_string(port); };
  size_t machine = 0;
  for (const std::string& address : {url(closed.port()), url(silent.port()), url(babbling.port()),
                                     server.url("nobody:wrong@"), std::string("no address at all")}) {
    SCOPED_TRACE(address);
    next_process();
    Options strict = on(std::to_string(machine++), address);
    strict.cache.strict = true;
    expect_right(strict);
    EXPECT_COUNTERS(0u, 1u, 1u);
    next_process();
    expect_right(strict);
    EXPECT_COUNTERS(1u, 0u, 0u);
  }
}

TEST_F(RemoteRows, JunkUnderTheRightNameIsRefused) {
  cache::RedisServer server;
  const Options here = on("0", server.url());
  const std::string key = Compiled(fn, here).explain({leaf({1, 2, 3, 4})}).key;
  flush(here);
  const std::string name = "tandem:" + std::to_string(cache::format_version) + ":entry:" + key;
  size_t machine = 1;
  for (const std::string& junk : {std::string("junk"), cache::seal(cache::Kind::Entry, key, "junk", ""),
                                  cache::seal(cache::Kind::Entry, key, std::string(1000, '\1'), "")}) {
    server.ask({"SET", name, junk});
    next_process();
    Options strict = on(std::to_string(machine++), server.url());
    strict.cache.strict = true;
    expect_right(strict);
    EXPECT_COUNTERS(0u, 1u, 1u);
    EXPECT_EQ(counter("cache_remote_error"), 1u);
    flush(strict);
  }
}

}  // namespace
}  // namespace tandem::test
