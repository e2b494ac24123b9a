#include "fuzz/shrink.h"

#include <algorithm>

namespace tandem::fuzz {

namespace {

using Candidates = std::vector<Program>;

void rename_place(Program& program, size_t from, size_t to) {
  for (Step& step : program.steps) std::replace(step.arguments.begin(), step.arguments.end(), from, to);
  std::replace(program.outputs.begin(), program.outputs.end(), from, to);
}

/// Drops a step; what read its results reads its first argument instead.
void without_step(const Program& program, size_t k, Candidates& to) {
  const Step gone = program.steps[k];
  Program smaller = program;
  smaller.steps.erase(smaller.steps.begin() + std::ptrdiff_t(k));
  std::vector<size_t> stand_ins = gone.arguments;
  stand_ins.push_back(0);
  for (size_t stand_in : stand_ins) {
    Program candidate = smaller;
    for (size_t result : gone.results) rename_place(candidate, result, stand_in);
    to.push_back(std::move(candidate));
  }
}

/// Drops a given tensor that nothing reads.
void without_given(const Program& program, size_t k, Candidates& to) {
  Program smaller = program;
  auto shift = [&](size_t& place) {
    if (place == k) return false;
    if (place > k) --place;
    return true;
  };
  bool free = true;
  for (Step& step : smaller.steps) {
    for (size_t& place : step.arguments) free = shift(place) && free;
    for (size_t& place : step.results) free = shift(place) && free;
  }
  for (size_t& place : smaller.outputs) free = shift(place) && free;
  for (Given& given : smaller.given)
    if (given.origin == Origin::View || given.origin == Origin::Same) free = shift(given.of) && free;
  if (!free) return;
  smaller.given.erase(smaller.given.begin() + std::ptrdiff_t(k));
  to.push_back(std::move(smaller));
}

template <class Change>
void changed_given(const Program& program, size_t k, const Change& change, Candidates& to) {
  Program candidate = program;
  if (change(candidate.given[k])) to.push_back(std::move(candidate));
}

template <class T>
bool set(T& field, T value) {
  return std::exchange(field, value) != value;
}

void plainer_given(const Program& program, size_t k, Candidates& to) {
  changed_given(program, k, [](Given& g) { return set(g.captured, false); }, to);
  changed_given(program, k, [](Given& g) { return set(g.requires_grad, false); }, to);
  changed_given(program, k, [](Given& g) { return set(g.layout, Layout::Dense); }, to);
  changed_given(
      program, k, [&](Given& g) { return set(g.dtype, program.higher_orders ? at::kDouble : at::kFloat); },
      to);
  changed_given(
      program, k, [](Given& g) { return g.origin == Origin::Computed && set(g.origin, Origin::Leaf); }, to);
  changed_given(program, k, [](Given& g) { return set(g.sizes, Ints{2}); }, to);
  for (size_t d = 0; d < program.given[k].sizes.size(); ++d) {
    changed_given(
        program, k,
        [d](Given& g) {
          g.sizes.erase(g.sizes.begin() + std::ptrdiff_t(d));
          return true;
        },
        to);
    changed_given(
        program, k, [d](Given& g) { return g.sizes[d] > 1 && set(g.sizes[d], g.sizes[d] - 1); }, to);
  }
}

/// All sizes of all given tensors at once: those that must agree can only change together.
void plainer_sizes(const Program& program, Candidates& to) {
  for (int64_t size : {4, 3, 2}) {
    Program candidate = program;
    bool changed = false;
    for (Given& given : candidate.given)
      for (int64_t& s : given.sizes) changed = (s == size && set(s, size - 1)) || changed;
    if (changed) to.push_back(candidate);
  }
  Program candidate = program;
  for (Given& given : candidate.given)
    if (!given.sizes.empty()) given.sizes.erase(given.sizes.begin());
  to.push_back(candidate);
  for (Given& given : (candidate = program).given) given.sizes = {2};
  if (std::any_of(program.given.begin(), program.given.end(),
                  [](const Given& g) { return g.sizes != Ints{2}; }))
    to.push_back(candidate);
}

/// Programs a little smaller than this one, the boldest first.
Candidates smaller_programs(const Program& program) {
  Candidates found;
  for (size_t k = program.steps.size(); k-- > 0;) without_step(program, k, found);
  for (size_t k = 0; k < program.outputs.size() && program.outputs.size() > 1; ++k) {
    found.push_back(program);
    found.back().outputs.erase(found.back().outputs.begin() + std::ptrdiff_t(k));
  }
  for (size_t k = program.given.size(); k-- > 0 && program.given.size() > 1;)
    without_given(program, k, found);
  for (size_t k = 0; k < program.steps.size(); ++k)
    if (program.steps[k].no_grad) {
      found.push_back(program);
      found.back().steps[k].no_grad = false;
    }
  for (size_t k = 0; k < program.steps.size(); ++k)
    for (size_t a = 0; a < program.steps[k].arguments.size(); ++a)
      if (program.steps[k].arguments[a] >= program.given.size())
        for (size_t place = 0; place < program.given.size(); ++place) {
          found.push_back(program);
          found.back().steps[k].arguments[a] = place;
        }
  plainer_sizes(program, found);
  for (size_t k = 0; k < program.given.size(); ++k) plainer_given(program, k, found);
  if (program.higher_orders) {
    found.push_back(program);
    found.back().higher_orders = false;
  }
  return found;
}

}  // namespace

Program shrink(Program program, const std::function<bool(const Program&)>& fails, size_t patience) {
  size_t tried = 0;
  for (bool smaller = true; smaller && tried < patience;) {
    smaller = false;
    for (const Program& candidate : smaller_programs(program)) {
      if (++tried > patience) break;
      if (!fails(candidate)) continue;
      program = candidate;
      smaller = true;
      break;
    }
  }
  return program;
}

}  // namespace tandem::fuzz
