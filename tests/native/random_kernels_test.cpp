// Machine code of random kernels against what they say, element by element.
#include "native/launches.h"
#include "native/machine_code.h"

#include <cstdlib>

namespace tandem::native {
namespace {

using loops::Case;

/// TANDEM_RANDOM_KERNELS=from,to is a long form.
std::pair<uint64_t, uint64_t> seeds() {
  std::pair<uint64_t, uint64_t> range = {1, 2001};
  if (const char* asked = std::getenv("TANDEM_RANDOM_KERNELS")) {
    char comma;
    std::istringstream(asked) >> range.first >> comma >> range.second;
  }
  return range;
}

std::vector<Case> cases(uint64_t first, uint64_t end) {
  std::vector<Case> cases;
  for (uint64_t seed = first; seed < end; ++seed) cases.push_back(loops::make_case(seed, supports));
  return cases;
}

std::vector<CodePointer> code_of_cases(const std::vector<Case>& cases) {
  std::vector<loops::Kernel> kernels;
  for (const Case& each : cases) kernels.push_back(each.kernel);
  return code_of(kernels);
}

/// Ends of up to four pieces.
std::vector<int64_t> random_ends(int64_t units, std::mt19937_64& random) {
  std::vector<int64_t> ends;
  for (uint64_t i = random() % 4; i > 0; --i) ends.push_back(static_cast<int64_t>(random() % (units + 1)));
  std::ranges::sort(ends);
  return ends;
}

TEST(RandomKernels, TheInterpreterIsWithinTheBounds) {
  for (const Case& each : cases(1, 1001)) {
    loops::Judgement judgement;
    const auto run = [&](auto... launch) { interpret(each.kernel, launch...); };
    judgement.look_at(each, loops::Bounds(each), loops::launched(each, run));
    ASSERT_TRUE(judgement.complaint.empty()) << judgement.complaint;
  }
}

TEST(RandomKernels, MachineCodeIsWithinTheBounds) {
  NEEDS_COMPILER();
  const auto [first, end] = seeds();
  loops::Judgement judgement;
  for (uint64_t begin = first; begin < end; begin += 100) {
    const std::vector<Case> some = cases(begin, std::min(end, begin + 100));
    const std::vector<CodePointer> code = code_of_cases(some);
    for (size_t i = 0; i < some.size(); ++i) {
      judgement.look_at(some[i], loops::Bounds(some[i]), loops::launched(some[i], code[i]->entry()));
      ASSERT_TRUE(judgement.complaint.empty()) << judgement.complaint;
    }
    forget_code();
  }
  EXPECT_GT(judgement.known, 10 * judgement.unknown);
}

/// What older processors have, where this one has more.
TEST(RandomKernels, MachineCodeOfFewFeaturesIsWithinTheBounds) {
  NEEDS_COMPILER();
  loops::Judgement judgement;
  for (const Case& each : cases(7000, 7300)) {
    const CodePointer code = compiled_for(each.kernel, to_string(each.kernel), "sse4.1,avx,fma,avx2");
    judgement.look_at(each, loops::Bounds(each), loops::launched(each, code->entry()));
    ASSERT_TRUE(judgement.complaint.empty()) << judgement.complaint;
  }
}

/// Texts are given of what LLVM finds well formed alone.
TEST(RandomKernels, AreEmittedAsLlvmWantsIt) {
  NEEDS_COMPILER();
  for (const Case& each : cases(8000, 8150)) EXPECT_NO_THROW(texts_of(each.kernel)) << to_string(each.kernel);
}

TEST(RandomKernels, PiecesOfALaunchGiveWhatItGives) {
  NEEDS_COMPILER();
  std::mt19937_64 random(7);
  const std::vector<Case> some = cases(5000, 5300);
  const std::vector<CodePointer> code = code_of_cases(some);
  for (size_t i = 0; i < some.size(); ++i) {
    const loops::Buffers whole = loops::launched(some[i], code[i]->entry()),
                         pieces =
                             loops::launched(some[i], code[i]->entry(), random_ends(some[i].units(), random));
    ASSERT_EQ(pieces, whole) << "seed " << some[i].seed << "\n" << to_string(some[i].kernel);
  }
}

}  // namespace
}  // namespace tandem::native
