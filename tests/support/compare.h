/// What tests of every kind ask: what was counted, what was said, and whether tensors are the same.
#pragma once

#include <gtest/gtest.h>
#include <tandem/tandem.h>
#include <torch/torch.h>

#include <cstdlib>
#include <cstring>

#include "fuzz/tolerance.h"

namespace tandem::test {

inline uint64_t counter(const std::string& name) { return counters().at(name); }

/// The sentence that `call` throws as E; empty when it throws nothing.
template <class E = std::exception, class Call>
std::string message(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Whether compiled code is that of `fuse` (support/machine_code.cpp), which may round otherwise.
inline bool may_round_otherwise(at::ScalarType dtype) {
  static const bool is_machine_code = std::getenv("TANDEM_MACHINE_CODE") != nullptr;
  return is_machine_code && fuzz::tolerance_of(dtype) != nullptr;
}

/// Bit for bit; shape, dtype, layout in memory where a size is above one. What may be rounded otherwise is
/// judged by how far eager's own moves, where that is known (fuzz/tolerance.h).
inline testing::AssertionResult same_values(const at::Tensor& got, const at::Tensor& want,
                                            const at::Tensor& moves = {}) {
  if (!got.defined() || !want.defined())
    return got.defined() == want.defined() ? testing::AssertionSuccess()
                                           : testing::AssertionFailure()
                                                 << (got.defined() ? "defined" : "undefined")
                                                 << ", not as in eager";
  if (got.scalar_type() != want.scalar_type())
    return testing::AssertionFailure()
           << "dtype " << got.scalar_type() << " instead of " << want.scalar_type();
  if (got.sizes() != want.sizes())
    return testing::AssertionFailure() << "sizes " << got.sizes() << " instead of " << want.sizes();
  if (got.layout() != want.layout())
    return testing::AssertionFailure() << "layout " << got.layout() << " instead of " << want.layout();
  if (want.layout() != at::kStrided) return same_values(got.detach().to_dense(), want.detach().to_dense());
  for (int64_t d = 0; d < want.dim() && want.numel() > 0; ++d)
    if (want.size(d) > 1 && got.stride(d) != want.stride(d))
      return testing::AssertionFailure() << "strides " << got.strides() << " instead of " << want.strides();
  at::NoGradGuard no_grad;
  at::Tensor a = got.detach().contiguous().clone(), b = want.detach().contiguous().clone();
  if (a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0)
    return testing::AssertionSuccess();
  if (may_round_otherwise(a.scalar_type()) &&
      (moves.defined() ? fuzz::is_within(b, a, moves) : fuzz::is_near(b, a)))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "values\n" << got << "\ninstead of\n" << want;
}

inline testing::AssertionResult same_tensor(const at::Tensor& got, const at::Tensor& want) {
  if (auto values = same_values(got, want); !values || !got.defined()) return values;
  if (got.requires_grad() != want.requires_grad())
    return testing::AssertionFailure() << "requires_grad is " << got.requires_grad();
  if (got.is_leaf() != want.is_leaf()) return testing::AssertionFailure() << "is_leaf is " << got.is_leaf();
  return testing::AssertionSuccess();
}

inline void expect_same(const Tensors& got, const Tensors& want, const std::string& what = "tensor") {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_tensor(got[i], want[i])) << what << " " << i;
}

}  // namespace tandem::test
