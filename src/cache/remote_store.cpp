#include "cache/remote_store.h"

#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>

#include "base/counters.h"

namespace tandem::cache {

namespace {

constexpr const char* wrong_type = "WRONGTYPE";

/// The replies to one question, for the thread that waits for them. Not std::promise: its call_once is a
/// symbol that a host program's libraries may find here instead of in the C++ library that they were made
/// with.
class Answer {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State : uint8_t { Waiting, Begun, Given, ThrownAway };

  /// The first bytes are there; returns when that was.
  Clock::time_point begin() {
    std::lock_guard lock(mutex_);
    if (state_ == State::Waiting) state_ = State::Begun;
    begun_ = Clock::now();
    changed_.notify_all();
    return begun_;
  }
  void end(State state, std::vector<RedisReply> replies = {}) {
    std::lock_guard lock(mutex_);
    if (state_ != State::Waiting && state_ != State::Begun) return;
    state_ = state;
    replies_ = std::move(replies);
    changed_.notify_all();
  }
  /// Takes the time off the patience.
  State wait(Patience& patience) {
    std::unique_lock lock(mutex_);
    const auto asked = Clock::now();
    changed_.wait_until(lock, asked + patience.left, [this] { return state_ != State::Waiting; });
    if (state_ == State::Begun)
      changed_.wait_until(lock, begun_ + patience.transfer, [this] { return state_ != State::Begun; });
    const auto now = Clock::now(), begun = begun_ == Clock::time_point() ? now : begun_;
    patience.left -= begun - asked;
    patience.transfer -= now - begun;
    return state_;
  }
  std::vector<RedisReply> take() {
    std::lock_guard lock(mutex_);
    return std::move(replies_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::Waiting;
  Clock::time_point begun_;
  std::vector<RedisReply> replies_;
};

/// What a job holds of it; a job that goes without being done was thrown away.
struct Question {
  std::shared_ptr<Answer> answer;
  std::vector<RedisReply> replies;
  ~Question() { answer->end(Answer::State::ThrownAway); }
};

}  // namespace

/// Reading and writing apart, so that a lookup never queues behind a large value and a full server can still
/// be read. They belong to one process: a child made by fork has neither their threads nor a right to their
/// connections, and makes lines of its own.
struct RemoteStore::Lines {
  pid_t process = getpid();
  std::shared_ptr<std::atomic<bool>> warned = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<RemoteLine> reading, writing;

  Lines(const RemoteAddress& address, const RemoteLimits& limits)
      : reading(std::make_shared<RemoteLine>(address, limits, warned)),
        writing(std::make_shared<RemoteLine>(address, limits, warned)) {}
};

/// Outlives the store when a thread does.
struct RemoteStore::Tally {
  std::atomic<uint64_t> hits = 0, misses = 0, errors = 0, skipped = 0, stored = 0, dropped = 0;

  void error() {
    ++errors;
    count("cache_remote_error");
  }
};

RemoteStore::RemoteStore(const std::string& url, std::string name_space, std::string signing_key,
                         RemoteLimits limits)
    : address_(parse_remote_url(url)),
      namespace_(std::move(name_space)),
      signing_key_(std::move(signing_key)),
      limits_(std::move(limits)),
      tally_(std::make_shared<Tally>()),
      lines_(new Lines(address_, limits_)) {}

RemoteStore::~RemoteStore() {
  Lines* lines = lines_;
  // the parent's, whose locks may be held by threads that are not here
  if (lines->process != getpid()) return;
  const auto end = std::chrono::steady_clock::now() + limits_.farewell;
  lines->writing->close(limits_.farewell);
  lines->reading->close(
      std::chrono::ceil<std::chrono::milliseconds>(std::max(end - std::chrono::steady_clock::now(), {})));
  delete lines;
}

RemoteStore::Lines& RemoteStore::lines() {
  Lines* known = lines_;
  if (known->process == getpid()) return *known;
  auto own = std::make_unique<Lines>(address_, limits_);
  // The parent's lines are left where they are: nothing of them can be touched safely.
  return lines_.compare_exchange_strong(known, own.get()) ? *own.release() : *known;
}

std::string RemoteStore::key_of(Kind kind, const std::string& name) const {
  return namespace_ + ":" + std::to_string(format_version) +
         (kind == Kind::Entry ? ":entry:" : ":artifact:") + name;
}

Fetched RemoteStore::get(Kind kind, const std::string& name) {
  Patience all = patience();
  return get_many({{kind, name}}, all).front();
}

std::vector<Fetched> RemoteStore::get_many(const std::vector<Wanted>& wanted, Patience& patience) {
  std::vector<Fetched> fetched(wanted.size());
  if (wanted.empty()) return fetched;
  const std::vector<RedisReply> replies = ask(wanted, patience);
  for (size_t i = 0; i < replies.size(); ++i) fetched[i] = read(wanted[i], replies[i]);
  return fetched;
}

/// No replies when there was trouble.
std::vector<RedisReply> RemoteStore::ask(const std::vector<Wanted>& wanted, Patience& patience) {
  std::vector<RedisConnection::Command> commands;
  for (const auto& [kind, name] : wanted) commands.push_back({"GET", key_of(kind, name)});
  auto answer = std::make_shared<Answer>();
  auto question = std::make_shared<Question>(answer);
  RemoteLine::Job job;
  const auto until = Answer::Clock::now() + patience.left;
  const auto transfer = patience.transfer;
  job.run = [question, until, transfer, commands = std::move(commands)](RedisConnection& server) {
    const auto begun = [&] { return question->answer->begin() + transfer; };
    std::vector<RedisReply> replies = server.ask(commands, until, begun);
    for (const RedisReply& reply : replies)
      if (reply.kind == RedisReply::Kind::Refused && reply.text != wrong_type)
        throw Error("refuses to be read (" + reply.text + ")");
    question->replies = std::move(replies);
  };
  job.done = [question = std::move(question)](const std::string&) {
    question->answer->end(Answer::State::Given, std::move(question->replies));
  };

  RemoteLine& line = *lines().reading;
  if (!line.post(std::move(job))) {
    ++tally_->skipped;
    return {};
  }
  const Answer::State state = answer->wait(patience);
  if (state == Answer::State::ThrownAway) {  // a job before it began a pause
    ++tally_->skipped;
    return {};
  }
  if (state == Answer::State::Waiting)
    line.fail("did not answer within " + std::to_string(limits_.wait.count()) + " ms");
  if (state == Answer::State::Begun)
    line.fail("did not send all of its answer within " + std::to_string(limits_.transfer.count()) + " ms");
  std::vector<RedisReply> replies = answer->take();
  if (replies.empty()) tally_->error();
  return replies;
}

Fetched RemoteStore::read(const Wanted& wanted, const RedisReply& reply) {
  if (reply.kind == RedisReply::Kind::Nothing) {
    ++tally_->misses;
    if (wanted.kind == Kind::Entry) count("cache_remote_miss");
    return {};
  }
  Opened opened = {{}, "is no string"};
  if (reply.kind == RedisReply::Kind::Bytes)
    opened = open(wanted.kind, wanted.name, reply.text, signing_key_, limits_.largest);
  if (!opened.complaint.empty()) {
    tally_->error();
    return {Fetched::State::Damaged, {}, std::move(opened.complaint)};
  }
  ++tally_->hits;
  if (wanted.kind == Kind::Entry) count("cache_remote_hit");
  return {Fetched::State::Found, std::move(opened.payload), {}};
}

void RemoteStore::put(Kind kind, const std::string& name, const std::string& payload) {
  RemoteLine& line = *lines().writing;
  if (payload.size() > limits_.largest || line.pausing()) {
    ++tally_->dropped;
    return;
  }
  RemoteLine::Job job;
  job.bytes = payload.size();
  // Sealed by the thread, since compressing takes time.
  job.run = [kind, name = std::string(name), payload = std::string(payload), key = key_of(kind, name),
             signing_key = signing_key_, time = limits_.write](RedisConnection& server) {
    const RedisReply reply = server
                                 .ask({{"SET", key, seal(kind, name, payload, signing_key)}},
                                      std::chrono::steady_clock::now() + time)
                                 .front();
    if (reply.kind != RedisReply::Kind::Done) throw Error("refuses to be written to (" + reply.text + ")");
  };
  job.done = [tally = tally_](const std::string& why) {
    why.empty() ? void(++tally->stored) : tally->error();
  };
  if (!line.post(std::move(job))) ++tally_->dropped;
}

bool RemoteStore::flush(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  Lines& both = lines();
  return both.writing->flush(time) && both.reading->flush(std::chrono::ceil<std::chrono::milliseconds>(
                                          until - std::chrono::steady_clock::now()));
}

bool RemoteStore::pausing() { return lines().reading->pausing(); }

RemoteStats RemoteStore::stats() {
  const Tally& now = *tally_;
  return {now.hits,    now.misses, now.errors,
          now.skipped, now.stored, now.dropped + lines().writing->dropped()};
}

}  // namespace tandem::cache
