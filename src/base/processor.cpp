#include "base/processor.h"

#include <algorithm>

namespace tandem {
namespace {

struct Feature {
  std::string_view name;
  bool is_there;
};

std::string_view first_name(std::string_view& names) {
  const std::string_view name = names.substr(0, names.find(','));
  names.remove_prefix(std::min(names.size(), name.size() + 1));
  return name;
}

std::string read_features() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const Feature features[] = {
      {"sse4.1", __builtin_cpu_supports("sse4.1") != 0},
      {"sse4.2", __builtin_cpu_supports("sse4.2") != 0},
      {"popcnt", __builtin_cpu_supports("popcnt") != 0},
      {"avx", __builtin_cpu_supports("avx") != 0},
      {"fma", __builtin_cpu_supports("fma") != 0},
      {"bmi", __builtin_cpu_supports("bmi") != 0},
      {"bmi2", __builtin_cpu_supports("bmi2") != 0},
      {"avx2", __builtin_cpu_supports("avx2") != 0},
      {"avx512f", __builtin_cpu_supports("avx512f") != 0},
      {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
      {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
      {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
  };
#else
  const std::initializer_list<Feature> features;
#endif
  std::string names;
  for (const Feature& feature : features)
    if (feature.is_there) (names += names.empty() ? "" : ",") += feature.name;
  return names;
}

}  // namespace

const std::string& processor_features() {
  static const auto& features = *new std::string(read_features());
  return features;
}

bool processor_has(std::string_view features) {
  while (!features.empty()) {
    std::string_view offered = processor_features();
    const std::string_view wanted = first_name(features);
    bool found = false;
    while (!found && !offered.empty()) found = first_name(offered) == wanted;
    if (!found) return false;
  }
  return true;
}

bool processor_suffices() { return processor_has("sse4.1,fma,avx2"); }

int64_t processor_register_bytes() { return processor_has("avx512vl") ? 64 : 32; }

}  // namespace tandem
