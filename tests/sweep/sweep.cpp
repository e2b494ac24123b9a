// Runs the table: every operator on every sample under "eager" and "debug", and decomposed for loops, twice
// on different numbers, once with spread-out cotangents, once without grad. With TANDEM_MACHINE_CODE
// set, under "fuse" alone.
#include "sweep.h"

#include "passes/loop_table.h"
#include "run.h"
#include "shapes/shapes.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <tandem/tandem.h>

#include <iostream>
#include <map>
#include <set>

namespace tandem::sweep {

namespace {

/// What the whole run adds up to.
struct Summary {
  std::set<std::string> operators;
  size_t rows = 0, samples = 0;
  std::map<std::string, size_t> thrown;  ///< by row: the samples for which eager itself throws
};

Summary& summary() {
  static Summary value;
  return value;
}

uint64_t counted(const std::string& name) {
  auto counts = counters();
  auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

/// How samples are compiled, and how near that comes to eager.
struct Way {
  const char* name;
  std::string backend;
  std::optional<DecompositionTable> decompositions;
  Match match;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> machine_code = {{"fuse", "fuse", std::nullopt, Match::Rounded}};
  static const std::vector<Way> all = {{"eager", "eager", std::nullopt, Match::Bits},
                                       {"debug", "debug", std::nullopt, Match::Bits},
                                       {"decomposed", "eager", loop_decompositions(), Match::Rounded}};
  return std::getenv("TANDEM_MACHINE_CODE") ? machine_code : all;
}

/// One call of a sample's inputs filled with new numbers.
struct Call {
  const char* what;
  uint64_t seed;
  Cotangents cotangents;
  uint64_t traces;  ///< how many it may need
};

const Call calls[] = {
    {"first call", 1, Cotangents::Dense, 1},
    {"second call, other numbers", 2, Cotangents::Dense, 0},
    {"third call, expanded cotangents", 3, Cotangents::Expanded, 0},
};

Outcome check_call(const Row& row, const Compiled& compiled, const Sample& sample, const Call& call,
                   Match match) {
  SCOPED_TRACE(call.what);
  at::manual_seed(call.seed);
  Tensors inputs = make(sample);
  Outcome eager = run(row.function, inputs, call.seed, call.cotangents);
  uint64_t traces = counted("trace");
  Outcome result = run(compiled, inputs, call.seed, call.cotangents);
  if (match == Match::Rounded && !same(eager, result))
    find_moves(eager, row.function, inputs, call.seed, call.cotangents);
  EXPECT_TRUE(same(eager, result, match));
  if (!eager.threw() && !result.threw()) {
    EXPECT_EQ(counted("trace") - traces, call.traces)
        << "a new signature must be traced, an equal one must not be traced again";
  }
  return eager;
}

void check_without_grad(const Row& row, const Compiled& compiled, const Sample& sample, Match match) {
  SCOPED_TRACE("without grad");
  at::NoGradGuard no_grad;
  check_call(row, compiled, sample, {"inference", 4, Cotangents::Dense, 1}, match);
}

void check_sample(const Row& row, const Sample& sample, const Way& way) {
  SCOPED_TRACE(way.name + (": " + to_string(sample)));
  Compiled compiled =
      compile(Callable(row.function),
              Options{.backend = way.backend, .name = row.name, .decompositions = way.decompositions});
  for (const Call& call : calls) {
    Outcome eager = check_call(row, compiled, sample, call, way.match);
    if (eager.threw() && way.name == ways().front().name) ++summary().thrown[row.name];
    if (eager.threw() || testing::Test::HasFailure()) return;
  }
  check_without_grad(row, compiled, sample, way.match);
}

class Operator : public testing::Test {
 public:
  explicit Operator(const Row& row) : row_(row) {}

  void TestBody() override {
    summary().operators.insert(row_.name.substr(0, row_.name.find('/')));
    summary().rows += 1;
    summary().samples += row_.samples.size();
    for (const Sample& sample : row_.samples) {
      for (const Way& way : ways()) check_sample(row_, sample, way);
      if (HasFailure()) return;
    }
  }

 private:
  const Row& row_;
};

/// One thread, so that sums in eager have one order; says at the end what was covered.
class Whole : public testing::Environment {
 public:
  void SetUp() override { at::set_num_threads(1); }

  void TearDown() override {
    const Summary& all = summary();
    std::cout << "sweep: " << all.operators.size() << " operators in " << all.rows << " rows, " << all.samples
              << " samples\nsweep: eager itself throws for samples of";
    for (const auto& [name, samples] : all.thrown) std::cout << " " << name << "(" << samples << ")";
    std::cout << "\nsweep: " << counted("fallback_shapes") << " shapes found on stand-in data, by";
    for (const std::string& name : fallback_operators()) std::cout << " " << name;
    std::cout << std::endl;
  }
};

const std::vector<Rows>& table() {
  static const std::vector<Rows> families = {
      unary_rows(),       activation_rows(), binary_rows(),     reduction_rows(),     matmul_rows(),
      linalg_rows(),      fft_rows(),        indexing_rows(),   view_rows(),          shape_rows(),
      convolution_rows(), pooling_rows(),    resampling_rows(), normalisation_rows(), recurrent_rows(),
      loss_rows(),        random_rows(),     inplace_rows(),
  };
  return families;
}

std::string test_name(const std::string& name) {
  size_t slash = name.find('/');
  return slash == std::string::npos ? name : name.substr(0, slash) + "__" + name.substr(slash + 1);
}

bool register_all() {
  testing::AddGlobalTestEnvironment(new Whole);
  std::set<std::string> names;
  for (const Rows& family : table()) {
    for (const Row& row : family) {
      std::string name = test_name(row.name);
      if (!names.insert(name).second) throw std::logic_error("two rows of the sweep are called " + name);
      testing::RegisterTest("Sweep", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [&row]() -> testing::Test* { return new Operator(row); });
    }
  }
  return true;
}

const bool registered = register_all();

}  // namespace

}  // namespace tandem::sweep
