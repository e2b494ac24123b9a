#include "base/modes.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <limits>

#if defined(__x86_64__)
#include <pmmintrin.h>
#endif

namespace tandem {
namespace {

/// The bits of Modes::switches, from the highest.
constexpr const char* switch_names[] = {"grad mode",
                                        "inference mode",
                                        "autocast on the CPU",
                                        "autocast on CUDA",
                                        "deterministic algorithms",
                                        "flash attention",
                                        "memory-efficient attention",
                                        "math attention",
                                        "cuDNN attention",
                                        "oneDNN",
                                        "cuDNN",
                                        "deterministic algorithms only warn",
                                        "deterministic fill",
                                        "reduced reductions in math attention"};

/// What kernels ask for besides, each below 1 << arithmetic_bits.
struct Arithmetic {
  const char* name;
  uint64_t (*read)(const at::Context&);
};
constexpr int arithmetic_bits = 3;

template <at::Float32Backend backend, at::Float32Op op>
uint64_t precision(const at::Context& context) {
  return uint64_t(context.float32Precision(backend, op));
}
template <auto read>
uint64_t number(const at::Context& context) {
  return uint64_t((context.*read)());
}

/// libtorch sets it for a thread and does not say how it is set.
uint64_t flushed_denormals(const at::Context&) {
#if defined(__x86_64__)
  const unsigned int control = _mm_getcsr();
  return uint64_t((control & _MM_FLUSH_ZERO_ON) != 0) << 1 | uint64_t((control & _MM_DENORMALS_ZERO_ON) != 0);
#else
  const volatile float least_normal = std::numeric_limits<float>::min();
  return least_normal / 2 == 0;
#endif
}

using at::Float32Backend, at::Float32Op;
constexpr Arithmetic arithmetic_rows[] = {
    {"float32 precision", precision<Float32Backend::GENERIC, Float32Op::ALL>},
    {"float32 precision on CUDA", precision<Float32Backend::CUDA, Float32Op::ALL>},
    {"float32 precision of matmul on CUDA", precision<Float32Backend::CUDA, Float32Op::MATMUL>},
    {"float32 precision of convolution on CUDA", precision<Float32Backend::CUDA, Float32Op::CONV>},
    {"float32 precision of RNNs on CUDA", precision<Float32Backend::CUDA, Float32Op::RNN>},
    {"float32 precision in oneDNN", precision<Float32Backend::MKLDNN, Float32Op::ALL>},
    {"float32 precision of matmul in oneDNN", precision<Float32Backend::MKLDNN, Float32Op::MATMUL>},
    {"float32 precision of convolution in oneDNN", precision<Float32Backend::MKLDNN, Float32Op::CONV>},
    {"float32 precision of RNNs in oneDNN", precision<Float32Backend::MKLDNN, Float32Op::RNN>},
    {"reduced reductions of float16 in cuBLAS", number<&at::Context::allowFP16ReductionCuBLAS>},
    {"reduced reductions of bfloat16 in cuBLAS", number<&at::Context::allowBF16ReductionCuBLAS>},
    {"accumulation in float16 in cuBLAS", number<&at::Context::allowFP16AccumulationCuBLAS>},
    {"reductions of float16 on the CPU", number<&at::Context::allowFP16ReductionCPU>},
    {"benchmarks of cuDNN", number<&at::Context::benchmarkCuDNN>},
    {"deterministic cuDNN", number<&at::Context::deterministicCuDNN>},
    {"deterministic oneDNN", number<&at::Context::deterministicMkldnn>},
    {"flushed denormals", flushed_denormals},
};
static_assert(std::size(arithmetic_rows) * arithmetic_bits <= 64);

}  // namespace

Modes Modes::now(bool with_arithmetic) {
  Modes modes;
  auto& context = at::globalContext();
  bool cpu = at::autocast::is_autocast_enabled(at::kCPU), cuda = at::autocast::is_autocast_enabled(at::kCUDA);
  const bool switches[] = {c10::GradMode::is_enabled(),
                           c10::InferenceMode::is_enabled(),
                           cpu,
                           cuda,
                           context.deterministicAlgorithms(),
                           context.userEnabledFlashSDP(),
                           context.userEnabledMemEfficientSDP(),
                           context.userEnabledMathSDP(),
                           context.userEnabledCuDNNSDP(),
                           context.userEnabledMkldnn(),
                           context.userEnabledCuDNN(),
                           context.deterministicAlgorithmsWarnOnly(),
                           context.deterministicFillUninitializedMemory(),
                           context.allowFP16BF16ReductionMathSDP()};
  static_assert(std::size(switches) == std::size(switch_names));
  for (bool on : switches) modes.switches = modes.switches << 1 | uint64_t(on);
  modes.default_dtype = c10::typeMetaToScalarType(c10::get_default_dtype());
  if (cpu) modes.autocast_cpu = at::autocast::get_autocast_dtype(at::kCPU);
  if (cuda) modes.autocast_cuda = at::autocast::get_autocast_dtype(at::kCUDA);
  if (!with_arithmetic) return modes;
  modes.threads = at::get_num_threads();
  uint64_t& packed = modes.arithmetic.emplace(0);
  for (const Arithmetic& row : arithmetic_rows) packed = packed << arithmetic_bits | row.read(context);
  return modes;
}

std::string Modes::to_string() const {
  std::string text;
  for (size_t i = 0; i < std::size(switch_names); ++i)
    text += std::string(switch_names[i]) +
            (switches >> (std::size(switch_names) - 1 - i) & 1 ? ": on\n" : ": off\n");
  text += std::string("default dtype: ") + c10::toString(default_dtype) + '\n';
  text += std::string("autocast dtypes: ") + c10::toString(autocast_cpu) + " on the CPU, ";
  text += std::string(c10::toString(autocast_cuda)) + " on CUDA\n";
  if (!arithmetic) return text;
  size_t shift = std::size(arithmetic_rows) * arithmetic_bits;
  for (const Arithmetic& row : arithmetic_rows) {
    shift -= arithmetic_bits;
    const uint64_t value = *arithmetic >> shift & ((1 << arithmetic_bits) - 1);
    text += std::string(row.name) + ": " + std::to_string(value) + '\n';
  }
  return text;
}

}  // namespace tandem
