#include "cache/remote_line.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <csignal>
#include <future>

namespace tandem::cache {
namespace {

using namespace std::chrono_literals;

/// A line to nowhere: its jobs never look at the connection.
struct RemoteLineTest : testing::Test {
  RemoteLimits limits;
  std::vector<int> order;  // the thread's until `flush` returned

  void SetUp() override {
#ifndef TANDEM_HAVE_HIREDIS
    GTEST_SKIP() << "built without hiredis";
#endif
  }

  std::shared_ptr<RemoteLine> line() {
    return std::make_shared<RemoteLine>(parse_remote_url("redis://127.0.0.1:1"), limits,
                                        std::make_shared<std::atomic<bool>>(true));
  }
  RemoteLine::Job note(int number, size_t bytes = 0) {
    return {[this, number](RedisConnection&) { order.push_back(number); }, [](const std::string&) {}, bytes};
  }
  static RemoteLine::Job failure() {
    return {[](RedisConnection&) { throw Error("does not like it"); }, [](const std::string&) {}};
  }
};

/// Holds the thread of a line until it is released.
struct Gate {
  std::promise<void> entered, released;

  RemoteLine::Job job() {
    return {[this](RedisConnection&) { entered.set_value(), released.get_future().wait(); },
            [](const std::string&) {}};
  }
};

TEST_F(RemoteLineTest, DoesJobsInOrder) {
  auto own = line();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(own->post(note(i)));
  ASSERT_TRUE(own->flush(20s));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(own->dropped(), 0u);
  own->close(20s);
}

TEST_F(RemoteLineTest, LeavesSignalsToOtherThreads) {
  auto own = line();
  sigset_t blocked, ours;
  sigemptyset(&blocked);
  own->post({[&](RedisConnection&) { pthread_sigmask(SIG_SETMASK, nullptr, &blocked); },
             [](const std::string&) {}});
  ASSERT_TRUE(own->flush(20s));
  for (int signal : {SIGPIPE, SIGINT, SIGALRM, SIGCHLD}) EXPECT_TRUE(sigismember(&blocked, signal)) << signal;
  pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_FALSE(sigismember(&ours, SIGINT)) << "the thread that posts keeps its own";
  own->close(20s);
}

TEST_F(RemoteLineTest, DropsTheOldestWhenThereAreTooMany) {
  limits.queue_count = 4;
  auto own = line();
  Gate gate;
  own->post(gate.job());
  gate.entered.get_future().wait();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(own->post(note(i)));
  EXPECT_EQ(own->dropped(), 6u);
  EXPECT_FALSE(own->flush(1ms));
  gate.released.set_value();
  ASSERT_TRUE(own->flush(20s));
  EXPECT_EQ(order, (std::vector<int>{6, 7, 8, 9}));
  own->close(20s);
}

TEST_F(RemoteLineTest, DropsTheOldestWhenTheyAreTooLarge) {
  limits.queue_bytes = 1000;
  auto own = line();
  Gate gate;
  own->post(gate.job());
  gate.entered.get_future().wait();
  for (int i = 0; i < 10; ++i) own->post(note(i, 300));
  EXPECT_EQ(own->dropped(), 7u);
  own->post(note(10, 700));
  EXPECT_EQ(own->dropped(), 9u);
  own->post(note(11, 5000));
  EXPECT_EQ(own->dropped(), 11u) << "one alone may be larger than the queue";
  gate.released.set_value();
  ASSERT_TRUE(own->flush(20s));
  EXPECT_EQ(order, (std::vector<int>{11}));
  for (int i = 0; i < 3; ++i) own->post(note(i, 300));
  ASSERT_TRUE(own->flush(20s));
  EXPECT_EQ(own->dropped(), 11u) << "the room of jobs that are done is free again";
  own->close(20s);
}

TEST_F(RemoteLineTest, ThrowsJobsAwayInAPause) {
  auto own = line();
  Gate gate;
  own->post(gate.job());
  gate.entered.get_future().wait();
  own->post(failure());
  own->post(note(1));
  own->post(note(2));
  EXPECT_FALSE(own->pausing());
  gate.released.set_value();
  ASSERT_TRUE(own->flush(20s));
  EXPECT_TRUE(own->pausing());
  EXPECT_EQ(own->dropped(), 2u);
  EXPECT_FALSE(own->post(note(3)));
  EXPECT_TRUE(order.empty());
  own->close(20s);
}

TEST_F(RemoteLineTest, TellsAboutAFailureOnlyOnceThePauseHasBegun) {
  for (int i = 0; i < 100; ++i) {
    auto own = line();
    std::promise<std::string> told;
    RemoteLine::Job job = failure();
    job.done = [&](const std::string& why) { told.set_value(why); };
    own->post(std::move(job));
    EXPECT_EQ(told.get_future().get(), "does not like it");
    EXPECT_FALSE(own->post(note(1)));
    own->close(20s);
  }
}

TEST_F(RemoteLineTest, StartsFromTheShortestPauseAfterASuccess) {
  auto now = std::make_shared<std::atomic<int64_t>>(0);
  limits.now = [now] { return RemoteLimits::Clock::time_point(std::chrono::milliseconds(*now)); };
  auto own = line();
  const auto fail_and_pass = [&](int64_t pause) {
    own->fail("was cut off");
    own->fail("was cut off again");  // in the pause, so it does not count
    *now += pause - 1;
    EXPECT_TRUE(own->pausing());
    *now += 1;
    EXPECT_FALSE(own->pausing());
  };
  fail_and_pass(1000);
  fail_and_pass(2000);
  own->post(note(1));
  ASSERT_TRUE(own->flush(20s));
  fail_and_pass(1000);
  own->close(20s);
}

TEST_F(RemoteLineTest, EndsInTimeWhenItsThreadIsStuck) {
  auto own = line();
  auto gate = std::make_shared<Gate>();
  RemoteLine::Job job = gate->job();
  job.done = [gate](const std::string&) {};
  own->post(std::move(job));
  gate->entered.get_future().wait();
  own->post(note(1));
  const auto begin = std::chrono::steady_clock::now();
  own->close(10ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(own->dropped(), 1u);
  std::weak_ptr<RemoteLine> gone = own;
  own.reset();
  EXPECT_FALSE(gone.expired()) << "the thread still needs it";
  gate->released.set_value();
  for (int i = 0; i < 2000 && !gone.expired(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(gone.expired());
}

}  // namespace
}  // namespace tandem::cache
