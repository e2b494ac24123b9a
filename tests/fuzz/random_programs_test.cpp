// Random programs, eager and compiled, on a fixed seed and on a new one, by the program `tandem` as a user
// runs it.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <random>

#include "base/process.h"

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t fixed_seed = 20, programs_a_test = 1000;

/// `tandem fuzz` with these arguments; the environment is set in front of it.
tandem::Finished fuzz(const std::string& arguments, const std::string& environment = "") {
  return tandem::run_program({"sh", "-c", environment + " '" TANDEM_PROGRAM "' fuzz " + arguments + " 2>&1"});
}

void expect_no_difference(uint64_t seed, uint64_t first) {
  const std::string which = "--seed " + std::to_string(seed) + " --first " + std::to_string(first) +
                            " --programs " + std::to_string(programs_a_test);
  const bool watched = std::string_view(std::getenv("TANDEM_WATCHED_CALLS")) == "all";
  const tandem::Finished run = fuzz(which + " --failures 3 --json" + (watched ? " --watched" : ""));
  const Json report = Json::parse(run.output, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << run.output;
  std::string shown;
  for (const Json& failure : report["failures"])
    for (const char* part : {"kind", "setup", "detail", "source"})
      shown += failure[part].get<std::string>() + "\n";
  EXPECT_EQ(run.status, 0) << shown << "Again: tandem fuzz " << which;
  EXPECT_EQ(report["programs"], programs_a_test);
  EXPECT_GT(report["compiled"], programs_a_test * 3 / 4) << "too few programs are compiled to say anything";
  EXPECT_GT(report["differentiated"], programs_a_test / 3);
  EXPECT_GT(report["differentiated_twice"], programs_a_test / 50);
}

class FixedSeed : public testing::TestWithParam<uint64_t> {};
TEST_P(FixedSeed, ProgramsDoAsInEager) { expect_no_difference(fixed_seed, GetParam() * programs_a_test); }
INSTANTIATE_TEST_SUITE_P(Programs, FixedSeed, testing::Range<uint64_t>(0, 10));

class NewSeed : public testing::TestWithParam<uint64_t> {};
TEST_P(NewSeed, ProgramsDoAsInEager) {
  const uint64_t seed = std::random_device()();
  std::printf("new seed %llu\n", static_cast<unsigned long long>(seed));
  expect_no_difference(seed, 0);
}
INSTANTIATE_TEST_SUITE_P(Programs, NewSeed, testing::Range<uint64_t>(0, 2));

TEST(Fuzz, RunsAlikeWithManyThreadsAndJobs) {
  const Json one = Json::parse(fuzz("--seed 4 --programs 600 --json", "OMP_NUM_THREADS=1").output);
  const Json many = Json::parse(fuzz("--seed 4 --programs 600 --jobs 2 --json", "OMP_NUM_THREADS=4").output);
  for (const char* field : {"programs", "compiled", "differentiated", "concessions", "failures"})
    EXPECT_EQ(one[field], many[field]) << field;
}

TEST(Fuzz, AnInterruptEndsItWithAReport) {
  const tandem::Finished run = fuzz("--seed 4 --programs 100000000 --json", "timeout --signal INT 3");
  EXPECT_NE(run.output.find("\"interrupted\":true"), std::string::npos) << run.output;
}

}  // namespace
