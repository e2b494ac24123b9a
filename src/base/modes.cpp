#include "base/modes.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

namespace tandem {
namespace {

/// The bits of Modes::switches, from the highest.
constexpr const char* switch_names[] = {"grad mode", "inference mode", "autocast on the CPU", "autocast on CUDA", "deterministic algorithms", "flash attention",
                                        "memory-efficient attention", "math attention", "cuDNN attention", "oneDNN", "cuDNN"};

}  // namespace

Modes Modes::now() {
  Modes modes;
  auto& context = at::globalContext();
  bool cpu = at::autocast::is_autocast_enabled(at::kCPU), cuda = at::autocast::is_autocast_enabled(at::kCUDA);
  const bool switches[] = {c10::GradMode::is_enabled(), c10::InferenceMode::is_enabled(), cpu, cuda, context.deterministicAlgorithms(),
                           context.userEnabledFlashSDP(), context.userEnabledMemEfficientSDP(), context.userEnabledMathSDP(),
                           context.userEnabledCuDNNSDP(), context.userEnabledMkldnn(), context.userEnabledCuDNN()};
  static_assert(std::size(switches) == std::size(switch_names));
  for (bool on : switches) modes.switches = modes.switches << 1 | uint64_t(on);
  modes.default_dtype = c10::typeMetaToScalarType(c10::get_default_dtype());
  if (cpu) modes.autocast_cpu = at::autocast::get_autocast_dtype(at::kCPU);
  if (cuda) modes.autocast_cuda = at::autocast::get_autocast_dtype(at::kCUDA);
  return modes;
}

std::string Modes::to_string() const {
  std::string text;
  for (size_t i = 0; i < std::size(switch_names); ++i)
    text += std::string(switch_names[i]) + (switches >> (std::size(switch_names) - 1 - i) & 1 ? ": on\n" : ": off\n");
  text += std::string("default dtype: ") + c10::toString(default_dtype) + '\n';
  return text + "autocast dtypes: " + c10::toString(autocast_cpu) + " on the CPU, " + c10::toString(autocast_cuda) + " on CUDA\n";
}

}  // namespace tandem
