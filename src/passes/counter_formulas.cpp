#include "passes/counter_formulas.h"

#include <cmath>
#include <limits>

#include "graph/boxing.h"
#include "graph/draws.h"
#include "ops/facts.h"

namespace tandem {
namespace {

/// What the node draws, in memory that it makes or writes.
TensorMeta drawn(const Graph& graph, const Node& node) {
  std::optional<TensorMeta> meta;
  for_each_result(node, [&](Value made) {
    if (!meta) meta = graph.meta(made);
  });
  return *meta;
}

class CounterFormula : public Formula {
 public:
  CounterFormula(Graph& graph, const Node& node, const CounterDraw& draw)
      : Formula(graph, node), result_(drawn(graph, node)), draw_(draw) {}

  Value uniform(at::ScalarType dtype) { return numbers("tandem::counter_uniform", dtype); }
  Value uniform() { return uniform(result_.dtype); }
  Value normal() { return numbers("tandem::counter_normal", result_.dtype); }
  /// Finer than half precision, so that small probabilities are not rounded away.
  Value fine_uniform() { return uniform(result_.dtype == at::kDouble ? at::kDouble : at::kFloat); }
  Value as_drawn(Value a) { return cast(a, result_.dtype); }

 private:
  Value numbers(const char* op, at::ScalarType dtype) {
    const std::vector<int64_t> sizes(result_.sizes.begin(), result_.sizes.end());
    return call(op, {draw_.seed, c10::IValue(draw_.stream), c10::IValue(sizes), c10::IValue(int64_t(dtype)),
                     c10::IValue(result_.device)});
  }

  const TensorMeta result_;
  const CounterDraw draw_;
};

std::vector<Value> dropout(CounterFormula& f) {
  const double kept = 1 - f.number(1);
  const Value mask = f.compare("aten::lt.Scalar", f.fine_uniform(), kept);
  return {f.mul(f.mul(f.tensor(0), mask), kept == 0 ? 0 : 1 / kept), mask};
}

/// What libtorch's is made of on the CPU, where it is not taken apart before it is recorded.
std::vector<Value> whole_dropout(CounterFormula& f) {
  const double kept = 1 - f.number(1);
  const Value mask = f.compare("aten::lt.Scalar", f.fine_uniform(), kept);
  return {f.mul(f.tensor(0), f.call("aten::div.Scalar", {f.as_drawn(mask), c10::IValue(kept)}))};
}

std::vector<Value> bernoulli_number(CounterFormula& f) {
  return {f.as_drawn(f.compare("aten::lt.Scalar", f.fine_uniform(), f.number(1)))};
}

/// libtorch's kernel refuses what is no probability.
std::vector<Value> bernoulli(CounterFormula& f, Value probability) {
  const Value least = f.compare("aten::ge.Scalar", probability, 0);
  const Value most = f.compare("aten::le.Scalar", probability, 1);
  const Value fits = f.apply("aten::all", f.call("aten::logical_and", {least, most}));
  f.node("aten::_assert_async.msg", {fits, c10::IValue("bernoulli expects probabilities between 0 and 1")});
  return {f.as_drawn(f.call("aten::lt.Tensor", {f.fine_uniform(), probability}))};
}
std::vector<Value> bernoulli_itself(CounterFormula& f) { return bernoulli(f, f.tensor(0)); }
std::vector<Value> bernoulli_tensor(CounterFormula& f) { return bernoulli(f, f.tensor(1)); }

std::vector<Value> rand(CounterFormula& f) { return {f.uniform()}; }
std::vector<Value> randn(CounterFormula& f) { return {f.normal()}; }

std::vector<Value> uniform_between(CounterFormula& f) {
  const double from = f.number(1), to = f.number(2);
  return {f.as_drawn(f.add(f.mul(f.widened(f.uniform()), to - from), from))};
}

std::vector<Value> normal_around(CounterFormula& f) {
  return {f.as_drawn(f.add(f.mul(f.widened(f.normal()), f.number(2)), f.number(1)))};
}

/// Never 0, as libtorch's are: who asks for their logarithm counts on that.
std::vector<Value> exponential(CounterFormula& f) {
  auto negative = [&](Value a) { return f.apply("aten::neg", a); };
  const Value positive = negative(f.apply("aten::log1p", negative(f.fine_uniform())));
  const double least = f.meta(positive).dtype == at::kDouble ? 0x1p-53 : 0x1p-24;
  return {f.as_drawn(f.mul(f.call("aten::clamp_min", {positive, c10::IValue(least)}), 1 / f.number(1)))};
}

Value whole_number(CounterFormula& f, double low, double high) {
  return f.as_drawn(f.add(f.apply("aten::floor", f.mul(f.uniform(at::kDouble), high - low)), low));
}
std::vector<Value> below(CounterFormula& f) { return {whole_number(f, 0, f.number(0))}; }
std::vector<Value> whole_between(CounterFormula& f) { return {whole_number(f, f.number(0), f.number(1))}; }

bool is_number_in(const Node& node, size_t argument, double least, double most) {
  const double number = std::get<c10::IValue>(node.arguments[argument]).toScalar().toDouble();
  return number >= least && number <= most;
}

constexpr double least_positive = std::numeric_limits<double>::min(),
                 infinity = std::numeric_limits<double>::infinity();
/// Of more, some would be noticeably rarer than others.
constexpr double most_whole_numbers = 0x1p32;

bool always(const Node&) { return true; }
bool is_training(const Node& node) {
  const c10::IValue& train = std::get<c10::IValue>(node.arguments[2]);
  return (train.isNone() || train.toBool()) && is_number_in(node, 1, 0, 1);
}
bool drops_some(const Node& node) {
  return is_training(node) &&
         is_number_in(node, 1, least_positive, 1 - std::numeric_limits<double>::epsilon());
}
bool has_probability(const Node& node) { return is_number_in(node, 1, 0, 1); }
bool has_deviation(const Node& node) { return is_number_in(node, 2, 0, infinity); }
bool has_rate(const Node& node) { return is_number_in(node, 1, least_positive, infinity); }
bool has_bound(const Node& node) { return is_number_in(node, 0, 1, most_whole_numbers); }
bool has_bounds(const Node& node) {
  const double low = std::get<c10::IValue>(node.arguments[0]).toScalar().toDouble();
  return std::abs(low) <= most_whole_numbers && is_number_in(node, 1, low + 1, low + most_whole_numbers);
}

struct CounterRow {
  const char* op;
  std::vector<Value> (*formula)(CounterFormula&);
  bool (*applies)(const Node&) = always;
  bool of_whole_numbers = false;  ///< what is drawn may be no floating numbers
};

constexpr CounterRow counter_rows[] = {
    {"aten::native_dropout", dropout, is_training},
    {"aten::dropout", whole_dropout, drops_some},
    {"aten::bernoulli", bernoulli_itself},
    {"aten::bernoulli.Tensor", bernoulli_tensor, always, true},
    {"aten::bernoulli_.Tensor", bernoulli_tensor, always, true},
    {"aten::bernoulli.p", bernoulli_number, has_probability, true},
    {"aten::bernoulli_.float", bernoulli_number, has_probability, true},
    {"aten::rand", rand},
    {"aten::rand_like", rand},
    {"aten::uniform", uniform_between},
    {"aten::uniform_", uniform_between},
    {"aten::randn", randn},
    {"aten::randn_like", randn},
    {"aten::normal_functional", normal_around, has_deviation},
    {"aten::normal_", normal_around, has_deviation},
    {"aten::exponential", exponential, has_rate},
    {"aten::exponential_", exponential, has_rate},
    {"aten::randint", below, has_bound, true},
    {"aten::randint.low", whole_between, has_bounds, true},
};

const CounterRow* find_counter_row(const Node& node) {
  const std::string name = full_name(node.op);
  for (const CounterRow& row : counter_rows)
    if (name == row.op) return &row;
  return nullptr;
}

}  // namespace

bool has_counter_formula(const Graph& graph, const Node& draw) {
  const CounterRow* row = find_counter_row(draw);
  if (!row || reads_numbers(draw) || !own_generator(draw).isNone()) return false;
  const TensorMeta meta = drawn(graph, draw);
  const auto is = [&](at::ScalarType dtype) { return meta.dtype == dtype; };
  const bool is_floating = is(at::kFloat) || is(at::kDouble) || is(at::kHalf) || is(at::kBFloat16);
  const bool is_whole = row->of_whole_numbers && c10::isIntegralType(meta.dtype, /*includeBool=*/true);
  return (meta.device.is_cpu() || meta.device.is_cuda()) && (is_floating || is_whole) && row->applies(draw);
}

std::vector<Value> counter_formula(Graph& graph, const Node& node, const CounterDraw& draw) {
  CounterFormula formula(graph, node, draw);
  return find_counter_row(node)->formula(formula);
}

std::vector<std::string> counter_operators() {
  std::vector<std::string> names;
  for (const CounterRow& row : counter_rows) names.push_back(row.op);
  return names;
}

}  // namespace tandem
