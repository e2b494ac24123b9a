#include "fuzz/program.h"

#include <algorithm>
#include <map>
#include <set>

namespace tandem::fuzz {

namespace {

/// Places that may share memory have one root.
class Roots {
 public:
  size_t of(size_t place) {
    while (parents_.contains(place)) place = parents_[place];
    return place;
  }
  void join(size_t a, size_t b) {
    if (of(a) != of(b)) parents_[of(a)] = of(b);
  }

 private:
  std::map<size_t, size_t> parents_;
};

/// Methods may return the tensor itself; free functions that are no views return a new one. What shares memory with an argument shares it with the first.
bool may_alias(const Row& row) {
  const std::string text = row.text;
  return text.starts_with("t[0].") || (row.kind != Kind::Value && !text.starts_with("at::rand"));
}

Roots roots_of(const Program& program) {
  Roots roots;
  for (size_t k = 0; k < program.given.size(); ++k)
    if (program.given[k].origin == Origin::View || program.given[k].origin == Origin::Same) roots.join(k, program.given[k].of);
  for (const Step& step : program.steps)
    if (may_alias(rows()[step.row]) && !step.arguments.empty())
      for (size_t result : step.results) roots.join(result, step.arguments[0]);
  return roots;
}

/// How many arguments a row may write: list operators write several.
size_t written(const Row& row, size_t arguments) { return row.kind != Kind::Write && row.kind != Kind::Shape ? 0 : row.nothing ? arguments : 1; }

}  // namespace

Program without_unread(const Program& program) {
  Roots roots = roots_of(program);
  std::set<size_t> live;
  for (size_t place : program.outputs) live.insert(roots.of(place));
  for (size_t k = 0; k < program.given.size(); ++k) live.insert(roots.of(k));
  std::set<size_t> read(program.outputs.begin(), program.outputs.end());
  Program needed = program;
  needed.steps.clear();
  for (auto step = program.steps.rbegin(); step != program.steps.rend(); ++step) {
    const Row& row = rows()[step->row];
    auto is_read = [&](size_t place) { return read.contains(place); };
    auto is_live = [&](size_t place) { return live.contains(roots.of(place)); };
    const bool seen = std::any_of(step->results.begin(), step->results.end(), is_read) || row.kind == Kind::Random;
    const auto targets = std::ptrdiff_t(written(row, step->arguments.size()));
    if (!seen && std::none_of(step->arguments.begin(), step->arguments.begin() + targets, is_live)) continue;
    read.insert(step->arguments.begin(), step->arguments.end());
    for (size_t place : step->arguments) live.insert(roots.of(place));
    needed.steps.insert(needed.steps.begin(), *step);
  }
  return needed;
}

}  // namespace tandem::fuzz
