#include "fuzz/campaign.h"

#include "fuzz/generate.h"
#include "fuzz/print.h"
#include "fuzz/shrink.h"

#include <algorithm>

namespace tandem::fuzz {

namespace {

/// libtorch warns of programs that nobody would write.
class Silence final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// What the comparison itself throws is a difference as well: it calls nothing that eager refuses.
Outcome judge(const Program& program, const Setup& setup) {
  try {
    return compare(subject_of(program), setup);
  } catch (const std::exception& error) {
    Outcome outcome;
    outcome.mismatch = Mismatch{"the comparison fails", error.what(), ""};
    return outcome;
  }
}

Failure describe(uint64_t number, const Program& program, const Mismatch& found, const Setup& setup) {
  const Program small = shrink(program, [&](const Program& candidate) {
    const Outcome outcome = judge(candidate, setup);
    return outcome.mismatch && outcome.mismatch->kind == found.kind;
  });
  return {number, judge(small, setup).mismatch.value_or(found), to_cpp(small), small.steps.size()};
}

/// A reason without the names and numbers of its program.
std::string kind_of_reason(std::string reason) {
  reason = reason.substr(0, std::min(reason.find(": "), size_t(90)));
  std::replace_if(reason.begin(), reason.end(), [](char c) { return c >= '0' && c <= '9'; }, 'N');
  return reason;
}

void count(Report& report, const Outcome& outcome) {
  ++report.programs;
  report.refused += outcome.refused;
  report.uncompiled += !outcome.eager_reason.empty();
  report.compiled += !outcome.refused && outcome.eager_reason.empty();
  report.differentiated += outcome.differentiated;
  report.twice += outcome.twice;
  report.loaded += outcome.loaded;
  if (!outcome.eager_reason.empty()) ++report.reasons[kind_of_reason(outcome.eager_reason)];
  for (const std::string& concession : outcome.concessions) ++report.concessions[concession];
}

}  // namespace

Setup Campaign::setup_of(uint64_t number) const {
  Setup own = setup;
  if (!budgets) return own;
  own.options.memory_budget = double(number % 11) / 10;
  own.options.cost_model = built_in_cost_model();  // so that a number means the same on every machine
  return own;
}

Report run(const Campaign& campaign) {
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  Report report;
  for (uint64_t number = campaign.first;
       number < campaign.first + campaign.programs && report.failures.size() < campaign.most_failures;
       ++number) {
    const Program program = generate(campaign.seed, number);
    const Setup setup = campaign.setup_of(number);
    const Outcome outcome = judge(program, setup);
    count(report, outcome);
    if (outcome.mismatch) report.failures.push_back(describe(number, program, *outcome.mismatch, setup));
  }
  return report;
}

void add(Report& to, const Report& part) {
  for (auto field : {&Report::programs, &Report::compiled, &Report::refused, &Report::uncompiled,
                     &Report::differentiated, &Report::twice, &Report::loaded})
    to.*field += part.*field;
  for (auto counts : {&Report::reasons, &Report::concessions})
    for (const auto& [what, n] : part.*counts) (to.*counts)[what] += n;
  to.failures.insert(to.failures.end(), part.failures.begin(), part.failures.end());
}

}  // namespace tandem::fuzz
