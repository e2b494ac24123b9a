#include "base/counters.h"

#include <tandem/compiled.h>
#include <tandem/error.h>

#include <array>
#include <atomic>
#include <string_view>

namespace tandem {

namespace {

struct Counter {
  std::string_view name;
  std::atomic<uint64_t> value = 0;
};

std::array<Counter, 26> table{{
    {"trace"},
    {"joint_trace"},
    {"partition"},
    {"compile_forward"},
    {"compile_backward"},
    {"compile_inference"},
    {"compile_higher_order"},
    {"backward_variant"},
    {"signature_evicted"},
    {"backward_evicted"},
    {"fallback_shapes"},
    {"ran_uncompiled"},
    {"promise_broken"},
    {"cache_hit"},
    {"cache_miss"},
    {"cache_bypass"},
    {"cache_unfit"},
    {"cache_corrupt"},
    {"cache_saved"},
    {"cache_remote_hit"},
    {"cache_remote_miss"},
    {"cache_remote_error"},
    {"cache_time_saved_us"},
    {"cache_backward_us"},
    {"kernel_compiled"},
    {"kernel_reused"},
}};

}  // namespace

void count(const char* name, uint64_t by) {
  for (Counter& counter : table)
    if (counter.name == name) {
      counter.value += by;
      return;
    }
  throw Error("There is no counter named \"" + std::string(name) +
              "\": add it to the table in counters.cpp.");
}

void reset_counters() {
  for (Counter& counter : table) counter.value = 0;
}

std::map<std::string, uint64_t> counters() {
  std::map<std::string, uint64_t> values;
  for (const Counter& counter : table) values.emplace(counter.name, counter.value);
  return values;
}

}  // namespace tandem
