#include "native/executable.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "native/image.h"
#include "tandem/error.h"

namespace tandem::native {
namespace {

/// x86's instruction that stops a program: code that runs past its end does not run on.
constexpr int stop = 0xCC;

[[noreturn]] void refuse_memory() {
  throw Error(std::string("The system gives no memory for machine code: ") + std::strerror(errno) +
              ". Use another backend.");
}

}  // namespace

Executable::Executable(std::span<const uint8_t> code, std::span<const uint8_t> constants) {
  const size_t code_size = padded_to(code.size(), page), constants_size = padded_to(constants.size(), page);
  size_ = code_size + constants_size;
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse_memory();
  memory_ = static_cast<uint8_t*>(memory);
  std::memset(memory_, stop, code_size);
  std::memcpy(memory_, code.data(), code.size());
  if (!constants.empty()) std::memcpy(memory_ + code_size, constants.data(), constants.size());
  if (mprotect(memory_, size_, PROT_READ) || mprotect(memory_, code_size, PROT_READ | PROT_EXEC)) {
    munmap(memory_, size_);
    refuse_memory();
  }
}

Executable::~Executable() { munmap(memory_, size_); }

}  // namespace tandem::native
