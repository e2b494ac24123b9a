#include "base/process.h"

#include <tandem/error.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace tandem {
namespace {

/// Our environment with `added` on top, as execve takes it.
std::vector<std::string> extended_environment(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> lines;
  for (char** line = environ; *line; ++line) {
    std::string name = std::string(*line).substr(0, std::strcspn(*line, "="));
    bool replaced = false;
    for (auto& [key, value] : added) replaced |= key == name;
    if (!replaced) lines.emplace_back(*line);
  }
  for (auto& [key, value] : added) lines.push_back(key + "=" + value);
  return lines;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

std::string read_to_end(int descriptor) {
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t n = read(descriptor, buffer, sizeof buffer);
    if (n > 0)
      text.append(buffer, n);
    else if (n == 0 || errno != EINTR)
      return text;
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Finished run_program(const std::vector<std::string>& command,
                     const std::vector<std::pair<std::string, std::string>>& environment, Errors errors) {
  std::vector<std::string> arguments = command, lines = extended_environment(environment);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(std::string("no pipe for a child process: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (errors == Errors::Hidden)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, command.front().c_str(), &actions, nullptr,
                                  pointers(arguments).data(), pointers(lines).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Finished finished;
  if (!failed) finished.output = read_to_end(ends[0]);
  close(ends[0]);
  finished.status = failed ? 127 : wait_for(child);
  return finished;
}

}  // namespace tandem
