/// A Redis server of the test's own.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "cache/redis_connection.h"
#include "support/files_below.h"

namespace tandem::cache {

/// A socket on this machine that accepts connections, when asked to listen, and never says a word.
class SilentPort {
 public:
  explicit SilentPort(bool listens = true) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* where = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, where, size) != 0 || getsockname(socket_, where, &size) != 0 ||
        (listens && listen(socket_, 16) != 0))
      throw std::runtime_error("no port on 127.0.0.1 is free");
    port_ = ntohs(address.sin_port);
  }
  ~SilentPort() { close(socket_); }
  SilentPort(const SilentPort&) = delete;

  uint16_t port() const { return port_; }
  int descriptor() const { return socket_; }

 private:
  int socket_;
  uint16_t port_ = 0;
};

inline bool has_redis_server() { return system("command -v redis-server >/dev/null 2>&1") == 0; }

struct RedisSettings {
  std::string password = {};
  std::string memory = {};  ///< as "1mb"; writes are refused beyond it
};

/// Runs from here to the end of the scope, on a port of 127.0.0.1 that nobody else had, and keeps nothing.
class RedisServer {
 public:
  explicit RedisServer(RedisSettings settings = {}) : settings_(std::move(settings)) {
    std::string folder = (std::filesystem::temp_directory_path() / "tandem-redis-XXXXXX").string();
    if (!mkdtemp(folder.data())) throw std::runtime_error("no temporary folder can be made");
    folder_ = folder;
    start();
  }
  ~RedisServer() {
    stop();
    tandem::test::remove_folder(folder_);
  }
  RedisServer(const RedisServer&) = delete;

  uint16_t port() const { return port_; }
  std::string url(const std::string& before = {}, const std::string& after = {}) const {
    return "redis://" + before + "127.0.0.1:" + std::to_string(port_) + after;
  }

  /// On the same port as before, when there was one.
  void start() {
    for (int attempt = 0; attempt < 20; ++attempt) {
      if (process_ == 0) launch();
      if (answers()) return;
      std::ifstream log(folder_ / "log");
      if (waitpid(process_, nullptr, WNOHANG) != process_)
        throw std::runtime_error("redis-server does not answer: " +
                                 std::string(std::istreambuf_iterator<char>(log), {}));
      process_ = 0;
      if (!was_up_) port_ = 0;  // another process took the port meanwhile
    }
    throw std::runtime_error("redis-server cannot be started");
  }
  void stop() {
    if (process_ == 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  /// The kernel goes on accepting connections for it and bytes, and nothing comes back.
  void freeze() { kill(process_, SIGSTOP); }
  void thaw() { kill(process_, SIGCONT); }

  /// As an administrator would, past the store.
  RedisReply ask(const RedisConnection::Command& command, uint32_t database = 0) {
    RedisConnection connection({.host = "127.0.0.1",
                                .port = port_,
                                .user = {},
                                .password = settings_.password,
                                .database = database},
                               size_t(1) << 30);
    return connection.ask({command}, RedisConnection::Clock::now() + std::chrono::seconds(20)).front();
  }

 private:
  void launch() {
    if (port_ == 0) port_ = SilentPort(false).port();
    std::vector<std::string> words = {"redis-server",
                                      "--port",
                                      std::to_string(port_),
                                      "--bind",
                                      "127.0.0.1",
                                      "-::1",
                                      "--dir",
                                      folder_.string(),
                                      "--logfile",
                                      (folder_ / "log").string(),
                                      "--save",
                                      "",
                                      "--appendonly",
                                      "no",
                                      "--daemonize",
                                      "no"};
    if (!settings_.password.empty()) words.insert(words.end(), {"--requirepass", settings_.password});
    if (!settings_.memory.empty())
      words.insert(words.end(), {"--maxmemory", settings_.memory, "--maxmemory-policy", "noeviction"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
  }

  bool answers() {
    for (int attempt = 0; attempt < 400; ++attempt) {
      try {
        if (ask({"PING"}).kind == RedisReply::Kind::Done) return was_up_ = true;
      } catch (const std::exception&) {
        if (waitid(P_PID, id_t(process_), nullptr, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    return false;
  }

  RedisSettings settings_;
  std::filesystem::path folder_;
  uint16_t port_ = 0;
  pid_t process_ = 0;
  bool was_up_ = false;
};

/// A test that needs a server, and says so where there is none.
struct RedisTest : testing::Test {
  void SetUp() override {
    if (!has_redis_server()) GTEST_SKIP() << "redis-server is not installed";
#ifndef TANDEM_HAVE_HIREDIS
    GTEST_SKIP() << "built without hiredis";
#endif
  }
};

}  // namespace tandem::cache
