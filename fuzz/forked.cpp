// Children run the programs, so that a crash costs one program and not the campaign.
#include "fuzz/campaign.h"
#include "fuzz/child.h"
#include "fuzz/generate.h"
#include "fuzz/print.h"
#include "fuzz/shrink.h"

#include <nlohmann/json.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

namespace tandem::fuzz {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Mismatch, kind, detail, setup)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Failure, number, mismatch, source, steps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Report, programs, compiled, refused, uncompiled, differentiated, twice,
                                   loaded, reasons, concessions, failures)

namespace {

constexpr uint64_t batch = 500;
constexpr size_t patience_with_crashes = 400;  // each try is a process
constexpr unsigned seconds_a_program = 120, seconds_a_candidate = 10;

template <class T>
std::string to_text(const T& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
template <class T>
T from_text(const std::string& text) {
  return nlohmann::json::parse(text).get<T>();
}

/// A number that parent and child both see.
class SharedNumber {
 public:
  SharedNumber()
      : memory_(mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED)
      throw Error("fuzz: there is no shared memory for the number of the running program");
  }
  ~SharedNumber() { munmap(memory_, sizeof(uint64_t)); }
  SharedNumber(const SharedNumber&) = delete;
  volatile uint64_t& value() const { return *static_cast<volatile uint64_t*>(memory_); }

 private:
  void* memory_;
};

/// Runs the campaign; says in `running` which program it is at, and gives up on one that does not end.
Report run_marked(const Campaign& campaign, volatile uint64_t& running) {
  Report report;
  for (uint64_t k = 0; k < campaign.programs && report.failures.size() < campaign.most_failures; ++k) {
    running = campaign.first + k;
    alarm(seconds_a_program);
    add(report, run({campaign.seed, campaign.first + k, 1, campaign.setup, 1, campaign.budgets}));
  }
  return report;
}

Failure shrink_crash(const Campaign& campaign, uint64_t number, const std::string& how) {
  auto crashes = [&](const Program& program) {
    const Child child([&] {
      alarm(seconds_a_candidate);
      compare(subject_of(program), campaign.setup_of(number));
      return std::string();
    });
    return crash_of(wait_for(child.pid())) == how;
  };
  const Program small = shrink(generate(campaign.seed, number), crashes, patience_with_crashes);
  return {number, {how, "the process ended", ""}, to_cpp(small), small.steps.size()};
}

/// In a child, since it makes tensors.
Failure describe_crash(const Campaign& campaign, uint64_t number, const std::string& how) {
  Child child([&] { return to_text(shrink_crash(campaign, number, how)); });
  if (wait_for(child.pid()) == 0) return from_text<Failure>(child.answer());
  return {number, {how, "the process ended already while the program was made", ""}, "", 0};
}

/// One batch in flight.
struct Flight {
  Campaign part;
  std::unique_ptr<SharedNumber> running = std::make_unique<SharedNumber>();
  std::unique_ptr<Child> child = {};
};

Flight start(const Campaign& part) {
  Flight flight{part};
  flight.child = std::make_unique<Child>([&] { return to_text(run_marked(part, flight.running->value())); });
  return flight;
}

/// What a batch found; what it left undone after a crash goes to `rest`.
Report finish(const Flight& flight, int status, std::vector<Campaign>& rest) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return from_text<Report>(flight.child->answer());
  const uint64_t last = flight.running->value();
  Report report;
  report.programs = 1;
  report.failures.push_back(describe_crash(flight.part, last, crash_of(status)));
  // What the child had counted died with it, so all but the crashing program run again.
  Campaign before = flight.part, after = flight.part;
  before.programs = last - before.first;
  after.first = last + 1;
  after.programs = flight.part.first + flight.part.programs - after.first;
  for (const Campaign& part : {before, after})
    if (part.programs > 0) rest.push_back(part);
  return report;
}

std::vector<Campaign> batches_of(const Campaign& campaign) {
  std::vector<Campaign> parts;
  for (uint64_t done = 0; done < campaign.programs; done += batch) {
    parts.push_back(campaign);
    parts.back().first = campaign.first + done;
    parts.back().programs = std::min(batch, campaign.programs - done);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

/// Takes the flight whose child has ended; none when a signal came first.
std::optional<std::pair<Flight, int>> next_landing(std::vector<Flight>& flights) {
  int status = 0;
  const pid_t pid = waitpid(-1, &status, 0);
  auto done =
      std::find_if(flights.begin(), flights.end(), [&](const Flight& f) { return f.child->pid() == pid; });
  if (done == flights.end()) return std::nullopt;
  Flight flight = std::move(*done);
  flights.erase(done);
  return std::pair(std::move(flight), status);
}

}  // namespace

Report run_forked(const Campaign& campaign, size_t jobs, const Audience& audience) {
  Report report;
  std::vector<Campaign> left = batches_of(campaign);
  std::vector<Flight> flights;
  auto stopped = [&] { return audience.stop != nullptr && *audience.stop; };
  while (!stopped() && (!flights.empty() || !left.empty())) {
    if (report.failures.size() >= campaign.most_failures) left.clear();
    for (; flights.size() < jobs && !left.empty(); left.pop_back()) flights.push_back(start(left.back()));
    if (flights.empty()) break;
    auto landed = next_landing(flights);
    // Ctrl-C ends the children as well, which is no crash.
    if (!landed || stopped()) continue;
    const Report part = finish(landed->first, landed->second, left);
    add(report, part);
    for (const Failure& failure : part.failures)
      if (audience.on_failure) audience.on_failure(failure);
    if (audience.on_progress) audience.on_progress(report);
  }
  for (Flight& flight : flights) flight.child->end();
  return report;
}

}  // namespace tandem::fuzz
