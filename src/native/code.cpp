#include "native/code.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "base/counters.h"
#include "loops/operators.h"
#include "native/compiler.h"
#include "native/machine_code.h"
#include "base/processor.h"
#include "native/progress.h"

namespace tandem::native {
namespace {

using Names = std::unordered_set<std::string>;

/// Code by the text of its kernel, and which kernels are being compiled.
class Memory {
 public:
  CodePointer find(const std::string& text) {
    const std::lock_guard lock(mutex_);
    const auto found = code_.find(text);
    return found == code_.end() ? nullptr : found->second;
  }

  /// Whether the caller is to compile it: nobody else does, and nobody has.
  bool claim(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return !code_.contains(text) && in_work_.insert(text).second;
  }

  /// Of what was claimed; without code where it could not be compiled.
  void finish(const std::string& text, CodePointer code) {
    {
      const std::lock_guard lock(mutex_);
      in_work_.erase(text);
      if (code) code_.emplace(text, std::move(code));
    }
    finished_.notify_all();
  }

  /// The code that is remembered, now that there is this.
  CodePointer add(const std::string& text, CodePointer code) {
    const std::lock_guard lock(mutex_);
    return code_.emplace(text, std::move(code)).first->second;
  }

  void wait_for(const std::string& text) {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return !in_work_.contains(text); });
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    code_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
  std::unordered_map<std::string, CodePointer> code_;
  Names in_work_;
};

Memory& memory() {
  static auto& all = *new Memory;
  return all;
}

struct Task {
  const loops::Kernel* kernel;
  const std::string* text;
  CodePointer* result;
};

/// Tasks that were claimed, done by this thread and some more.
class Work {
 public:
  explicit Work(std::vector<Task> tasks) : tasks_(std::move(tasks)), progress_(tasks_.size()) {}

  void run() {
    std::vector<std::thread> helpers;
    const size_t most = std::min<size_t>(tasks_.size(), static_cast<size_t>(at::get_num_threads()));
    try {
      for (size_t i = 1; i < most; ++i) helpers.emplace_back([this] { take_tasks(); });
    } catch (const std::system_error&) {
      // The system has no more threads: those that there are do the work.
    }
    take_tasks();
    for (std::thread& helper : helpers) helper.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void take_tasks() {
    for (size_t i = next_++; i < tasks_.size(); i = next_++) compile(tasks_[i]);
  }

  void compile(const Task& task) {
    try {
      *task.result = compiled_for(*task.kernel, *task.text, processor_features());
      count("kernel_compiled");
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    memory().finish(*task.text, *task.result);
    progress_.note_done();
  }

  std::vector<Task> tasks_;
  Progress progress_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

/// Kernels whose code is asked for, and what of it there is.
class Wanted {
 public:
  explicit Wanted(std::span<const loops::Kernel> kernels) : kernels_(kernels), code_(kernels.size()) {
    for (const loops::Kernel& kernel : kernels) {
      verify(kernel);
      texts_.push_back(to_string(kernel));
    }
  }

  /// What another thread compiles may fail there, or be forgotten before it is seen here.
  std::vector<CodePointer> take() {
    while (!find()) {
      Work(claim()).run();
      for (size_t i = 0; i < code_.size(); ++i)
        if (!code_[i]) memory().wait_for(texts_[i]);
    }
    return std::move(code_);
  }

 private:
  bool find() {
    bool all = true;
    for (size_t i = 0; i < code_.size(); ++i) {
      if (code_[i]) continue;
      code_[i] = memory().find(texts_[i]);
      if (code_[i]) count("kernel_reused");
      all = all && code_[i];
    }
    return all;
  }

  std::vector<Task> claim() {
    std::vector<Task> tasks;
    for (size_t i = 0; i < code_.size(); ++i)
      if (!code_[i] && memory().claim(texts_[i])) tasks.push_back({&kernels_[i], &texts_[i], &code_[i]});
    return tasks;
  }

  std::span<const loops::Kernel> kernels_;
  std::vector<std::string> texts_;
  std::vector<CodePointer> code_;
};

}  // namespace

bool supports(loops::Op op, loops::Type type) { return loops::operator_of(op).types & loops::kind_of(type); }

bool can_compile() { return has_compiler(); }

std::vector<CodePointer> code_of(std::span<const loops::Kernel> kernels) { return Wanted(kernels).take(); }

CodePointer load_code(const loops::Kernel& kernel, std::span<const uint8_t> bytes) {
  verify(kernel);
  const std::string text = to_string(kernel);
  const std::optional<Artifact> artifact = read_artifact(bytes, text);
  if (!artifact || !processor_has(artifact->features)) return nullptr;
  if (CodePointer known = memory().find(text)) return known;
  return memory().add(text, in_memory(kernel, {bytes.begin(), bytes.end()}, *artifact));
}

void forget_code() { memory().forget(); }

Texts texts_of(const loops::Kernel& kernel) {
  verify(kernel);
  CompilerTexts texts = compiler_texts(kernel);
  return {to_string(kernel), std::move(texts.ir), std::move(texts.assembly)};
}

}  // namespace tandem::native
