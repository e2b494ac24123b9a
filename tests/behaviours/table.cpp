// The table that a run prints, and the tests behind its lines.
#include "behaviours/row.h"

#include <iostream>
#include <map>
#include <set>

namespace tandem::behaviours {
namespace {

/// Every row of the sections that compiled functions have to keep; a row is registered once or the run fails.
const std::map<char, std::vector<int>> sections = {
    {'A', {1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 20, 21}},
    {'B', {1, 2, 3, 4, 6, 7, 8, 10, 11, 14, 15, 16, 17, 19, 20, 23, 24, 25, 26, 27, 28, 29}},
    {'C', {1, 2, 3, 4, 6, 7, 8, 9, 11, 13, 14, 15, 17, 18, 20, 22, 23}},
    {'D', {1, 2, 4, 5, 6, 7, 8, 10, 11, 14, 15, 16, 17, 18, 19, 21}},
    {'E', {1, 3, 4, 5, 7, 8, 9, 11, 13, 14, 15, 16}},
    {'H', {1, 2, 3, 5, 6, 7}},
    {'I', {1, 3, 4, 5, 6, 8, 9}},
    {'J', {1, 2, 3, 5, 6}},
    {'K', {1, 2, 4, 5, 6, 8, 9, 10, 11, 13}},
    {'O', {3, 4, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17}},
    {'P', {1, 2, 4, 6, 7, 8, 9}},
};

struct Outcome {
  bool ran = false, failed = false;
  std::set<std::string> remarks;
};

std::vector<Row>& registered() {
  static std::vector<Row> rows;
  return rows;
}
std::map<std::string, Outcome>& outcomes() {
  static std::map<std::string, Outcome> all;
  return all;
}
std::string running;

bool is_tested(const Row& row) { return !row.cases.empty() || row.check; }

class RowTest final : public testing::Test {
 public:
  explicit RowTest(Row row) : row_(std::move(row)) {}
  void TestBody() override {
    Outcome& outcome = outcomes()[row_.id];
    running = row_.id;
    outcome.ran = true;
    for (size_t i = 0; i < row_.cases.size(); ++i) {
      SCOPED_TRACE("case " + std::to_string(i));
      hold(row_.cases[i]);
    }
    if (row_.check) row_.check();
    running.clear();
  }
  void TearDown() override { outcomes()[row_.id].failed = HasFailure(); }

 private:
  Row row_;
};

std::string state_of(const Row& row) {
  const Outcome& outcome = outcomes()[row.id];
  if (outcome.failed) return "FAIL";
  if (is_tested(row)) return outcome.ran ? "pass" : "not run";
  return row.waits_for.empty() ? "does not apply" : "waits for " + row.waits_for;
}

class PrintTable final : public testing::Environment {
  void TearDown() override {
    std::map<std::pair<char, int>, std::string> lines;
    std::map<std::string, int> totals;
    for (const Row& row : registered()) {
      std::string state = state_of(row),
                  line = row.id + std::string(5 - std::min<size_t>(4, row.id.size()), ' ') + state;
      ++totals[state.substr(0, state.find(' '))];
      if (is_tested(row) && !row.waits_for.empty()) line += "; waits for " + row.waits_for;
      if (!row.does_not_apply.empty())
        line += (is_tested(row) ? "; does not apply: " : ": ") + row.does_not_apply;
      for (const std::string& remark : outcomes()[row.id].remarks) line += "; " + remark;
      lines[{row.id[0], std::stoi(row.id.substr(1))}] = line;
    }
    for (const auto& [place, line] : lines) std::cout << line << "\n";
    for (const auto& [state, count] : totals) std::cout << state << " " << count << "  ";
    std::cout << std::endl;
  }
};

TEST(Behaviours, EveryRowIsInTheTableOnce) {
  std::map<std::string, int> found;
  for (const Row& row : registered()) {
    ++found[row.id];
    EXPECT_TRUE(is_tested(row) || !row.waits_for.empty() || !row.does_not_apply.empty())
        << row.id << " says nothing";
  }
  for (const auto& [section, numbers] : sections)
    for (int number : numbers) {
      std::string id = section + std::to_string(number);
      EXPECT_EQ(found[id], 1) << id;
      found.erase(id);
    }
  for (const auto& [id, count] : found) ADD_FAILURE() << id << " is no row of the table";
}

}  // namespace

bool add_rows(std::vector<Row> rows) {
  static testing::Environment* const table = testing::AddGlobalTestEnvironment(new PrintTable);
  (void)table;
  for (Row& row : rows) {
    if (is_tested(row))
      testing::RegisterTest("Behaviours", row.id.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [row]() -> testing::Test* { return new RowTest(row); });
    registered().push_back(std::move(row));
  }
  return true;
}

void hold(const Case& c) {
  Expectations expect = c.expect;
  expect.options.debug_asserts = true;
  // At a warm start; calls that run as they are are in no cache.
  expect.options.cache.strict = std::getenv("TANDEM_EXPECT_HITS") && c.cached && expect.compiled;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    SCOPED_TRACE("inputs " + std::to_string(i));
    std::string reason = test::compare(c.fn, c.inputs[i], expect);
    if (!reason.empty()) remark("uncompiled: " + reason.substr(0, reason.find('\n')));
  }
}

void remark(const std::string& text) { outcomes()[running].remarks.insert(text); }

}  // namespace tandem::behaviours
