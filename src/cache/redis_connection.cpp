#include "cache/redis_connection.h"

#include <tandem/error.h>

#ifdef TANDEM_HAVE_HIREDIS

#include <fcntl.h>
#include <hiredis/hiredis.h>

#include <cerrno>
#include <utility>

namespace tandem::cache {

namespace {

using Clock = RedisConnection::Clock;

struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

/// Throws when the time is over, so that a server that sends a byte now and then is left as well.
timeval time_left(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now()).count();
  if (left <= 0) throw Error("did not answer in time");
  return {.tv_sec = left / 1'000'000, .tv_usec = left % 1'000'000};
}

[[noreturn]] void throw_trouble(const redisContext* context, int error) {
  if (!context) throw Error("cannot be reached: out of memory");
  if (context->err == REDIS_ERR_EOF) throw Error("closed the connection");
  if (context->err == REDIS_ERR_PROTOCOL) throw Error("answers with something else than Redis's protocol");
  if (context->err == REDIS_ERR_IO && (error == EAGAIN || error == EWOULDBLOCK || error == ETIMEDOUT))
    throw Error("did not answer in time");
  throw Error("cannot be reached: " + std::string(context->errstr));
}

/// The first word in capitals.
std::string code_of(std::string_view message) {
  std::string code(message.substr(0, message.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ")));
  return code.empty() ? "ERR" : code;
}

RedisReply read(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_NIL:
      return {};
    case REDIS_REPLY_STRING:
      return {RedisReply::Kind::Bytes, std::string(reply.str, reply.len)};
    case REDIS_REPLY_STATUS:
      return {RedisReply::Kind::Done, {}};
    case REDIS_REPLY_INTEGER:
      return {RedisReply::Kind::Done, {}};
    case REDIS_REPLY_ERROR:
      return {RedisReply::Kind::Refused, code_of({reply.str, reply.len})};
  }
  throw Error("answers with something else than a value");
}

}  // namespace

struct RedisConnection::Context : std::unique_ptr<redisContext, FreeContext> {};

RedisConnection::RedisConnection(RemoteAddress address, size_t largest)
    : address_(std::move(address)), largest_(largest) {}

std::vector<RedisReply> RedisConnection::ask(const std::vector<Command>& commands, Clock::time_point until,
                                             const Begun& begun) {
  const bool had_one = context_ != nullptr;
  try {
    if (!had_one) connect(until);
    return exchange(commands, until, begun);
  } catch (const Error&) {
    context_.reset();
    if (!had_one || Clock::now() >= until) throw;
  }
  // Servers close connections that nobody used for a while, and that shows only now.
  return ask(commands, until, begun);
}

void RedisConnection::connect(Clock::time_point until) {
  context_ = std::make_unique<Context>();
  context_->reset(redisConnectWithTimeout(address_.host.c_str(), address_.port, time_left(until)));
  if (!*context_ || (*context_)->err) throw_trouble(context_->get(), errno);
  fcntl((*context_)->fd, F_SETFD, FD_CLOEXEC);

  std::vector<Command> greeting;
  if (!address_.password.empty())
    greeting.push_back(address_.user.empty() ? Command{"AUTH", address_.password}
                                             : Command{"AUTH", address_.user, address_.password});
  if (address_.database != 0) greeting.push_back({"SELECT", std::to_string(address_.database)});
  const std::vector<RedisReply> replies = exchange(greeting, until);
  for (size_t i = 0; i < replies.size(); ++i)
    if (replies[i].kind != RedisReply::Kind::Done)
      throw Error(greeting[i][0] == "AUTH"
                      ? "refused the user or the password"
                      : "refused database " + greeting[i][1] + " (" + replies[i].text + ")");
}

std::vector<RedisReply> RedisConnection::exchange(const std::vector<Command>& commands,
                                                  Clock::time_point until, Begun begun) {
  redisContext* context = context_->get();
  redisSetTimeout(context, time_left(until));
  for (const Command& command : commands) {
    std::vector<const char*> words;
    std::vector<size_t> lengths;
    for (const std::string& word : command) {
      words.push_back(word.data());
      lengths.push_back(word.size());
    }
    if (redisAppendCommandArgv(context, int(words.size()), words.data(), lengths.data()) != REDIS_OK)
      throw_trouble(context, errno);
  }
  for (int done = commands.empty(); !done; time_left(until))
    if (redisBufferWrite(context, &done) != REDIS_OK) throw_trouble(context, errno);

  std::vector<RedisReply> replies;
  while (replies.size() < commands.size()) {
    void* reply = nullptr;
    if (redisGetReplyFromReader(context, &reply) != REDIS_OK) throw_trouble(context, errno);
    if (reply) {
      replies.push_back(read(*std::unique_ptr<redisReply, FreeReply>(static_cast<redisReply*>(reply))));
      continue;
    }
    if (context->reader->len > largest_ + 65536)
      throw Error("sends a value of more than " + std::to_string(largest_) + " bytes");
    time_left(until);
    if (redisBufferRead(context) != REDIS_OK) throw_trouble(context, errno);
    if (const Begun first = std::exchange(begun, {})) {
      until = first();
      redisSetTimeout(context, time_left(until));
    }
  }
  return replies;
}

}  // namespace tandem::cache

#else

namespace tandem::cache {

struct RedisConnection::Context {};

RedisConnection::RedisConnection(RemoteAddress, size_t) {
  throw Error(
      "A remote cache was asked for, and Tandem was built without hiredis: install hiredis (on Debian "
      "libhiredis-dev) and build Tandem again, or use no remote cache.");
}
std::vector<RedisReply> RedisConnection::ask(const std::vector<Command>&, Clock::time_point, const Begun&) {
  return {};
}

}  // namespace tandem::cache

#endif

namespace tandem::cache {

RedisConnection::~RedisConnection() = default;
RedisConnection::RedisConnection(RedisConnection&&) noexcept = default;

}  // namespace tandem::cache
