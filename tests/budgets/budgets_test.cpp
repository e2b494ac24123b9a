// The promise of a memory budget, measured on the benchmark models: gradients stay eager's, a smaller budget
// never takes more memory than a larger one, and the prediction says how much.
#include "cli/program.h"
#include "models.h"

#include <sstream>

namespace {

struct Budgets : Cli, testing::WithParamInterface<std::string> {
  /// One line for each budget, from 1 to 0.
  std::vector<Json> measured() {
    fs::current_path(folder);  // charts are drawn where the program runs
    EXPECT_EQ(run({"bench", "--budget", "--model", GetParam(), "--json", "--seconds", "0.1"}), 0) << errors();
    std::vector<Json> lines;
    std::istringstream text(output());
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
};

}  // namespace

TEST_P(Budgets, NeverRaiseThePeakAndKeepGradientsEagers) {
  const std::vector<Json> lines = measured();
  ASSERT_EQ(lines.size(), 11u);
  int64_t above = lines[0]["eager_peak_bytes"], kept = lines[0]["eager_saved_bytes"];
  for (const Json& line : lines) {
    SCOPED_TRACE(line.dump());
    EXPECT_EQ(line["max_error"], 0.0);
    const int64_t peak = line["peak_bytes"], predicted = line["predicted_peak_bytes"];
    EXPECT_LE(peak, above);
    EXPECT_LE(line["saved_bytes"].get<int64_t>(), kept);
    EXPECT_NEAR(double(predicted), double(peak), 0.1 * double(peak));
    above = peak;
    kept = line["saved_bytes"];
  }
}

INSTANTIATE_TEST_SUITE_P(All, Budgets, testing::ValuesIn(tandem::bench::model_names()),
                         [](const auto& test) { return test.param; });
