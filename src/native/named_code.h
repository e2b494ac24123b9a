/// Tells debuggers and profilers what code is called that no file holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "loops/kernel.h"

namespace tandem::native {

/// "tandem_reduce_max_sub_exp_reduce_sum_div": what it computes, in few words.
std::string name_of(const loops::Kernel& kernel);

/// As long as it lives gdb knows the code by its name; perf reads it from /tmp/perf-PID.map, which is written
/// where TANDEM_PERF_MAP is set.
class NamedCode {
 public:
  NamedCode(const uint8_t* code, size_t size, const std::string& name);
  ~NamedCode();
  NamedCode(const NamedCode&) = delete;
  NamedCode& operator=(const NamedCode&) = delete;

  /// What gdb's interface asks for, a list of objects that hold symbols.
  struct Entry {
    Entry *next, *previous;
    const uint8_t* object;
    uint64_t size;
  };

 private:
  std::vector<uint8_t> object_;
  Entry entry_;
};

}  // namespace tandem::native
