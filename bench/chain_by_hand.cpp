// One pass over memory forward, another one backward, which computes everything again; sums in vectors, a
// column sum for each range of rows.
#include "chain_by_hand.h"

#include <ATen/ATen.h>
#include <tandem/error.h>

#include <mutex>

#include "loops/parallel.h"

#ifdef __x86_64__
#include <immintrin.h>

// Nothing but what is below is compiled for a processor with AVX2.
#pragma GCC push_options
#pragma GCC target("avx2,fma")

// SLEEF's functions, which libtorch exports.
extern "C" {
__m256 Sleef_expf8_u10avx2(__m256);
__m256 Sleef_tanhf8_u10avx2(__m256);
__m256 Sleef_erff8_u10avx2(__m256);
}

namespace tandem::bench {
namespace {

constexpr int64_t lanes = 8, rows_at_a_time = 16;

__m256 all(float number) { return _mm256_set1_ps(number); }
__m256 add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
__m256 mul(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
__m256 exponential(__m256 x) { return Sleef_expf8_u10avx2(x); }
__m256 sigmoid(__m256 x) {
  return _mm256_div_ps(all(1), add(all(1), exponential(_mm256_sub_ps(_mm256_setzero_ps(), x))));
}
/// The distribution of the normal law.
__m256 below(__m256 x) { return mul(all(0.5), add(all(1), Sleef_erff8_u10avx2(mul(x, all(0.70710678f))))); }

/// The values on the way to the loss.
struct Forward {
  __m256 gate, first, sum, swish, bell, second, below_second, last;

  Forward(__m256 x, __m256 weight) {
    gate = sigmoid(mul(x, weight));
    first = _mm256_fmadd_ps(Sleef_tanhf8_u10avx2(x), all(0.5), gate);
    sum = add(first, x);
    swish = sigmoid(sum);
    bell = exponential(_mm256_sub_ps(_mm256_setzero_ps(), mul(first, first)));
    second = mul(mul(sum, swish), bell);
    below_second = below(second);
    last = _mm256_fmsub_ps(second, below_second, _mm256_max_ps(x, _mm256_setzero_ps()));
  }

  __m256 gradient_of_weight(__m256 x) const {
    const __m256 density = mul(all(0.39894228f), exponential(mul(all(-0.5), mul(second, second))));
    const __m256 of_second = mul(mul(all(2), last), _mm256_fmadd_ps(second, density, below_second));
    const __m256 slope = mul(swish, _mm256_fmadd_ps(sum, _mm256_sub_ps(all(1), swish), all(1)));
    const __m256 of_first =
        mul(of_second, mul(bell, _mm256_fnmadd_ps(mul(all(2), first), mul(sum, swish), slope)));
    return mul(mul(of_first, mul(gate, _mm256_sub_ps(all(1), gate))), x);
  }
};

struct Pass {
  const float *x, *weight;
  int64_t width;
  at::Tensor result;
  std::mutex* mutex;
};

void add_losses(const void* context, int64_t begin, int64_t end) {
  const Pass& pass = *static_cast<const Pass*>(context);
  double total = 0;
  for (int64_t row = begin; row < end; ++row) {
    __m256 sum = _mm256_setzero_ps();
    for (int64_t k = 0; k < pass.width; k += lanes) {
      const Forward values(_mm256_loadu_ps(pass.x + row * pass.width + k), _mm256_loadu_ps(pass.weight + k));
      sum = _mm256_fmadd_ps(values.last, values.last, sum);
    }
    float terms[lanes];
    _mm256_storeu_ps(terms, sum);
    for (float term : terms) total += term;
  }
  const std::lock_guard lock(*pass.mutex);
  *pass.result.data_ptr<double>() += total;
}

void add_gradients(const void* context, int64_t begin, int64_t end) {
  const Pass& pass = *static_cast<const Pass*>(context);
  const at::Tensor columns = at::zeros({pass.width});
  float* sums = columns.data_ptr<float>();
  for (int64_t first = begin; first < end; first += rows_at_a_time)
    for (int64_t k = 0; k < pass.width; k += lanes) {
      __m256 sum = _mm256_loadu_ps(sums + k);
      for (int64_t row = first; row < std::min(end, first + rows_at_a_time); ++row) {
        const __m256 x = _mm256_loadu_ps(pass.x + row * pass.width + k);
        sum = add(sum, Forward(x, _mm256_loadu_ps(pass.weight + k)).gradient_of_weight(x));
      }
      _mm256_storeu_ps(sums + k, sum);
    }
  const std::lock_guard lock(*pass.mutex);
  pass.result.add_(columns);
}

}  // namespace

bool can_run_by_hand() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

ChainStep chain_by_hand(const at::Tensor& x, const at::Tensor& weight) {
  const c10::AutoGradMode no_grad(false);
  std::mutex mutex;
  const int64_t rows = x.size(0), width = x.size(1);
  const Pass forward{x.const_data_ptr<float>(), weight.const_data_ptr<float>(), width,
                     at::zeros({}, at::kDouble), &mutex};
  loops::in_parallel(rows, rows_at_a_time, add_losses, &forward);
  Pass backward = forward;
  backward.result = at::zeros({width});
  loops::in_parallel(rows, rows_at_a_time, add_gradients, &backward);
  return {forward.result.to(at::kFloat), backward.result};
}

}  // namespace tandem::bench
#pragma GCC pop_options
#else
namespace tandem::bench {
bool can_run_by_hand() { return false; }
ChainStep chain_by_hand(const at::Tensor&, const at::Tensor&) { throw Error("there is no AVX2 here"); }
}  // namespace tandem::bench
#endif
