// Compiling: what is remembered, what is counted, and from several threads.
#include "loops/kernels.h"
#include "native/launches.h"
#include "native/machine_code.h"
#include "native/progress.h"

#include <tandem/compiled.h>
#include <tandem/error.h>

#include <stdexcept>
#include <thread>

#include "base/counters.h"

namespace tandem::native {
namespace {

std::pair<uint64_t, uint64_t> compiled_and_reused() {
  const auto all = counters();
  return {all.at("kernel_compiled"), all.at("kernel_reused")};
}

using Counts = std::pair<uint64_t, uint64_t>;

TEST(Code, EqualKernelsAreCompiledOnce) {
  NEEDS_COMPILER();
  forget_code();
  reset_counters();
  const std::vector kernels = {loops::softmax(), loops::pointwise(), loops::softmax()};
  const std::vector<CodePointer> code = code_of(kernels);
  EXPECT_EQ(code[0], code[2]);
  EXPECT_NE(code[0], code[1]);
  EXPECT_EQ(compiled_and_reused(), Counts(2, 1));
  EXPECT_EQ(code_of(kernels), code);
  EXPECT_EQ(compiled_and_reused(), Counts(2, 4));
}

TEST(Code, WhatIsForgottenIsCompiledAgainAndStaysWhereItIsUsed) {
  NEEDS_COMPILER();
  const std::vector kernels = {loops::sum_of_rows(loops::Type::F32, false)};
  const CodePointer before = code_of(kernels).front();
  forget_code();
  EXPECT_NE(code_of(kernels).front(), before);
  float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, sum = 0;
  void* const buffers[] = {x, &sum};
  const int64_t shape[] = {1, 0, 1, 9, 9, 1, 1, 0};
  before->entry()(buffers, shape, nullptr, 0, 1);
  EXPECT_EQ(sum, 45);
}

TEST(Code, IsTheSameEachTime) {
  NEEDS_COMPILER();
  const std::vector kernels = {loops::softmax(), loops::layer_norm()};
  forget_code();
  const std::vector<CodePointer> before = code_of(kernels);
  forget_code();
  const std::vector<CodePointer> again = code_of(kernels);
  for (size_t i = 0; i < kernels.size(); ++i) EXPECT_EQ(again[i]->bytes(), before[i]->bytes());
}

TEST(Code, ThatTakesLongIsToldHowFarItIs) {
  testing::internal::CaptureStderr();
  Progress(2).note_done();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "it has not taken long yet";
  testing::internal::CaptureStderr();
  Progress progress(3, std::chrono::seconds(0));
  for (int i = 0; i < 3; ++i) progress.note_done();
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* part : {"1 of 3 kernels", "2 of 3 kernels", "3 of 3 kernels"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(Code, OfManyKernelsIsCompiledWithALineASecond) {
  NEEDS_COMPILER();
  std::vector<loops::Kernel> kernels;
  for (uint64_t seed = 20000; seed < 20400; ++seed)
    kernels.push_back(loops::make_case(seed, supports).kernel);
  forget_code();
  testing::internal::CaptureStderr();
  const auto start = Progress::Clock::now();
  code_of(kernels);
  const double seconds = std::chrono::duration<double>(Progress::Clock::now() - start).count();
  const std::string said = testing::internal::GetCapturedStderr();
  const bool has_line = said.find("kernels are done after") != std::string::npos;
  EXPECT_TRUE(has_line || seconds < 1.5) << seconds << "s: " << said;
  EXPECT_TRUE(!has_line || seconds > 1) << seconds << "s: " << said;
}

TEST(Code, ThreadsThatWantTheSameCompileItOnce) {
  NEEDS_COMPILER();
  std::vector<loops::Kernel> kernels;
  for (uint64_t seed = 9000; seed < 9020; ++seed) kernels.push_back(loops::make_case(seed, supports).kernel);
  forget_code();
  reset_counters();
  std::vector<std::vector<CodePointer>> found(4);
  std::vector<std::thread> threads;
  for (auto& code : found) threads.emplace_back([&] { code = code_of(kernels); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& code : found) EXPECT_EQ(code, found[0]);
  EXPECT_EQ(compiled_and_reused().first + compiled_and_reused().second, 4 * kernels.size());
  EXPECT_LE(compiled_and_reused().first, kernels.size());
}

TEST(Code, ThreadsThatForgetMeanwhileDoNoHarm) {
  NEEDS_COMPILER();
  const std::vector kernels = {loops::pointwise(), loops::sum_of_rows(loops::Type::I32, true)};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round)
        for (const CodePointer& code : code_of(kernels)) EXPECT_TRUE(code);
    });
  threads.emplace_back([] {
    for (int round = 0; round < 50; ++round) forget_code(), std::this_thread::yield();
  });
  for (std::thread& thread : threads) thread.join();
}

TEST(Code, OfWhatIsMalformedIsRefused) {
  loops::Kernel kernel = loops::pointwise();
  kernel.width = 7;
  EXPECT_THROW(code_of(std::vector{kernel}), std::invalid_argument);
  EXPECT_THROW(load_code(kernel, {}), std::invalid_argument);
}

TEST(Code, HasTexts) {
  NEEDS_COMPILER();
  const Texts texts = texts_of(loops::softmax());
  EXPECT_EQ(texts.loops, to_string(loops::softmax()));
  EXPECT_NE(texts.ir.find("define void @tandem_kernel("), std::string::npos);
  EXPECT_NE(texts.assembly.find("tandem_kernel:"), std::string::npos);
}

TEST(Code, WithoutACompilerSaysWhatIsMissing) {
  if (can_compile()) GTEST_SKIP() << "there is a compiler";
  try {
    code_of(std::vector{loops::pointwise()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Machine code cannot be made: "), std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::native
