#include "fuzz/child.h"

#include <ATen/Parallel.h>
#include <c10/util/Logging.h>
#include <tandem/error.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace tandem::fuzz {

namespace {

/// One thread, so that this process can have children in turn: neither OpenMP's threads nor those that
/// autograd keeps for each GPU outlive a fork.
void become_single_threaded() {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  at::set_num_threads(1);
}

[[noreturn]] void do_work(const std::function<std::string()>& work, std::FILE* answer) {
  int status = 0;
  try {
    become_single_threaded();
    // Programs are refused by the thousand, and nobody reads from where.
    c10::SetStackTraceFetcher([] { return std::string(); });
    const std::string text = work();
    std::fwrite(text.data(), 1, text.size(), answer);
    std::fflush(answer);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: %s\n", error.what());
    status = 3;
  }
  // Destructors of the parent's objects are the parent's.
  _exit(status);
}

}  // namespace

Child::Child(const std::function<std::string()>& work) : answer_(std::tmpfile()) {
  if (answer_ == nullptr) throw Error("fuzz: a temporary file cannot be made; is the folder for them full?");
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw Error("fuzz: a process cannot be started; ask for fewer jobs");
  if (pid_ != 0) return;
  std::signal(SIGINT, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(4);
  do_work(work, answer_);
}

Child::~Child() { std::fclose(answer_); }

std::string Child::answer() {
  std::string text;
  std::rewind(answer_);
  for (int c = std::fgetc(answer_); c != EOF; c = std::fgetc(answer_)) text += char(c);
  return text;
}

void Child::end() {
  kill(pid_, SIGKILL);
  wait_for(pid_);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string crash_of(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "it does not end";
  return WIFSIGNALED(status) ? std::string("crash: ") + strsignal(WTERMSIG(status))
                             : "crash: exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace tandem::fuzz
