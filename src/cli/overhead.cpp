#include "bench.h"
#include "measure.h"
#include "table.h"

#include <tandem/compile.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <iostream>

namespace tandem::cli {

namespace {

constexpr int calls_a_round = 300, traces = 21;

/// Microseconds of one call of each function: medians over rounds in which all of them take their turn, so
/// that a noisy moment hits them alike.
std::vector<double> microseconds(const std::vector<std::function<void()>>& functions, int rounds = 60) {
  std::vector<std::vector<double>> times(functions.size());
  for (int round = -3; round < rounds; ++round)  // the first ones warm up
    for (size_t i = 0; i < functions.size(); ++i) {
      const double start = seconds_now();
      for (int call = 0; call < calls_a_round; ++call) functions[i]();
      if (round >= 0) times[i].push_back((seconds_now() - start) / calls_a_round * 1e6);
    }
  std::vector<double> medians;
  for (auto& of_one : times) medians.push_back(median(of_one));
  return medians;
}

/// What one compile took, the median of several.
struct CompileCost {
  size_t nodes = 0;
  double trace = 0, whole = 0;  ///< seconds
};

CompileCost typical_compile(const bench::Benchmark& gpt, const std::string& backend, int times = traces) {
  CompileCost cost;
  std::vector<double> recording, whole;
  for (int i = 0; i < times; ++i) {
    const Compiled fresh = compile([&](const Tensors& in) { return Tensors{gpt.loss(in)}; },
                                   {.backend = backend, .watch = {gpt.module}, .cache = {.enabled = false}});
    const Explanation explanation = fresh.explain(gpt.inputs);
    cost.nodes = explanation.nodes_recorded;
    recording.push_back(explanation.trace_seconds);
    whole.push_back(explanation.trace_seconds + explanation.compile_seconds);
  }
  cost.trace = median(recording);
  cost.whole = median(whole);
  return cost;
}

/// Recording one node in one-element adds: the median over traces of which each follows adds, since machines
/// change their pace.
double recording_in_adds(const bench::Benchmark& gpt, const std::string& backend,
                         const std::function<void()>& add) {
  auto microseconds_of_add = [&] {
    at::NoGradGuard without_grad;
    return microseconds({add}, 1)[0];
  };
  std::vector<double> ratios;
  for (int i = 0; i < traces; ++i) {
    const double one_add = microseconds_of_add();
    const CompileCost cost = typical_compile(gpt, backend, 1);
    ratios.push_back(cost.trace / double(cost.nodes) * 1e6 / one_add);
  }
  return median(ratios);
}

Tensors ten_operators(const Tensors& in) {
  at::Tensor x = in[0], y = x * in[1];
  y = (y + x).tanh() * 0.5;
  y = (y - in[1]).sigmoid() + x.sin();
  return {y.exp().mul(x)};
}

}  // namespace

void print_overhead(const BenchOptions& options) {
  const c10::Device device(options.device);
  const auto place = at::TensorOptions(at::kFloat).device(device);
  const Tensors plain{at::rand({1}, place), at::rand({1}, place)};
  const Callable add = [](const Tensors& in) { return Tensors{in[0] + in[1]}; };
  const Compiled compiled_add = compile(add, {.backend = options.backends[0], .watched_calls = false});
  std::vector<double> calls;
  {
    at::NoGradGuard without_grad;
    calls = microseconds(
        {[&] { at::add(plain[0], plain[1]); }, [&] { add(plain); }, [&] { compiled_add(plain); }});
  }
  const Tensors leaves{at::rand({1}, place).requires_grad_(), at::rand({1}, place).requires_grad_()};
  const Callable ten = ten_operators;
  const Compiled compiled_ten = compile(ten, {.backend = options.backends[0], .watched_calls = false});
  auto forward_backward = [&](const auto& function) {
    function(leaves)[0].backward();
    bench::drop_gradients(leaves);
  };
  const std::vector<double> steps =
      microseconds({[&] { forward_backward(ten); }, [&] { forward_backward(compiled_ten); }});
  const double record_adds = recording_in_adds(bench::make_gpt(wide_gpt, 1, device), options.backends[0],
                                               [&] { at::add(plain[0], plain[1]); });
  const Json line = {{"eager_add_us", calls[0]},           {"record_adds", record_adds},
                     {"eager_call_us", calls[1]},          {"call_us", calls[2]},
                     {"eager_call_backward_us", steps[0]}, {"call_backward_us", steps[1]}};
  if (options.json) {
    std::cout << line.dump() << std::endl;
    return;
  }
  auto us = [&](const char* name) { return fixed(line[name], 2); };
  std::cout << table(
      {{"what", "eager us", "tandem us"},
       {"one add of one element", us("eager_add_us"), "-"},
       {"one add, as a call", us("eager_call_us"), us("call_us")},
       {"forward and backward of ten operators", us("eager_call_backward_us"), us("call_backward_us")},
       {"recording one node (gpt, 12 layers), in adds", "-", us("record_adds")}});
}

void print_linear(const BenchOptions& options) {
  const c10::Device device(options.device);
  std::vector<Row> rows{{"layers", "nodes", "compile", "us per node"}};
  std::vector<double> costs;
  for (int64_t layers : {4, 8, 16, 32, 64}) {
    const bench::Benchmark gpt = bench::make_gpt(
        {.layers = layers, .width = 64, .heads = 4, .vocabulary = 1000, .context = 64}, 1, device);
    const CompileCost cost = typical_compile(gpt, options.backends[0]);
    costs.push_back(cost.whole / cost.nodes * 1e6);
    if (options.json)
      std::cout << Json{{"layers", layers},
                        {"nodes", cost.nodes},
                        {"compile_s", cost.whole},
                        {"us_per_node", costs.back()}}
                       .dump()
                << std::endl;
    rows.push_back(
        {std::to_string(layers), std::to_string(cost.nodes), duration(cost.whole), fixed(costs.back(), 2)});
  }
  const auto [lowest, highest] = std::minmax_element(costs.begin(), costs.end());
  if (options.json)
    std::cout << Json{{"ratio", *highest / *lowest}}.dump() << std::endl;
  else
    std::cout << table(rows) << "highest over lowest cost per node: " << factor(*highest / *lowest) << "\n";
}

}  // namespace tandem::cli
