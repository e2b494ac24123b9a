/// Work that is done in a process of its own.
#pragma once

#include <functional>
#include <string>

#include <cstdio>
#include <sys/types.h>

namespace tandem::fuzz {

/// A child process that does some work and answers with text. It dies with its parent.
class Child {
 public:
  explicit Child(const std::function<std::string()>& work);
  ~Child();
  Child(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// What it answered; to be asked when it has ended.
  std::string answer();
  /// Ends it, whatever it does.
  void end();

 private:
  std::FILE* answer_;
  pid_t pid_;
};

/// Its wait status.
int wait_for(pid_t pid);

/// How a process ended that did not end well.
std::string crash_of(int status);

}  // namespace tandem::fuzz
