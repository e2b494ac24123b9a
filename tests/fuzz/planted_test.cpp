// Bugs that are planted on purpose are found, and made small.
#include "backends/fused_graph.h"
#include "backends/registry.h"
#include "fuzz/campaign.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <csignal>

namespace tandem {
namespace {

constexpr uint64_t seed = 6, programs = 1500;

// A crash is looked for in children, which a process with OpenMP's threads must not have.
const bool single_threaded = (at::set_num_threads(1), true);

fuzz::Campaign campaign_of(const std::string& backend, Options options = {}) {
  return {seed, 0, programs, {{backend}, std::move(options)}, 1};
}

/// The one difference, which must be of this kind and have been made small.
fuzz::Failure expect_found(const fuzz::Report& report, const std::string& kind, size_t most_steps) {
  EXPECT_EQ(report.failures.size(), 1u) << "the bug was not found in " << report.programs << " programs";
  if (report.failures.empty()) return {};
  const fuzz::Failure& failure = report.failures[0];
  EXPECT_NE(failure.mismatch.kind.find(kind), std::string::npos) << failure.mismatch.kind << "\n"
                                                                 << failure.mismatch.detail << "\n"
                                                                 << failure.source;
  EXPECT_LE(failure.steps, most_steps) << failure.source;
  EXPECT_NE(failure.source.find("Tensors program("), std::string::npos);
  return failure;
}

/// The eager backend with a bug: in the graph that it is given, or around the code that it makes.
class Spoilt final : public Backend {
 public:
  using Change = std::function<Graph(Graph)>;
  using Run = std::function<Tensors(const Graph&, const CompileContext&, Executable&, Tensors&&)>;
  Spoilt(std::string name, Change change, Run run)
      : name_(std::move(name)), change_(std::move(change)), run_(std::move(run)) {}
  std::string name() const override { return name_; }
  std::string version() const override { return "1"; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    auto inner = find_backend("eager")->compile(change_ ? change_(graph) : graph, context);
    if (!run_) return inner;
    return boxed([graph, inner, stage = context.stage, order = context.order, contract = context.contract,
                  run = run_](Tensors&& inputs) {
      CompileContext known;
      known.stage = stage;
      known.order = order;
      known.contract = contract;
      return run(graph, known, *inner, std::move(inputs));
    });
  }

 private:
  std::string name_;
  Change change_;
  Run run_;
};

fuzz::Report search(const std::string& name, Spoilt::Change change, Spoilt::Run run) {
  register_backend(std::make_shared<Spoilt>(name, std::move(change), std::move(run)));
  return fuzz::run(campaign_of(name));
}

bool calls(const Graph& graph, const std::string& op) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& n) { return n.op.schema().name() == "aten::" + op; });
}

TEST(Planted, AnOperatorThatIsWrongInTheLastBit) {
  const fuzz::Report report = search(
      "wrong_sin", {}, [](const Graph& graph, const CompileContext&, Executable& inner, Tensors&& inputs) {
        Tensors results = inner.run(std::move(inputs));
        if (calls(graph, "sin"))
          for (at::Tensor& r : results)
            if (r.defined() && at::isFloatingType(r.scalar_type()))
              r = at::nextafter(r, at::full_like(r, 10));
        return results;
      });
  EXPECT_NE(expect_found(report, ": other values", 1).source.find("sin"), std::string::npos);
}

TEST(Planted, APassThatSwapsAddForSubtract) {
  const fuzz::Report report =
      search("swaps",
             [](Graph graph) {
               for (Node& node : graph.nodes())
                 if (node.op.operator_name() == c10::OperatorName("aten::add", "Tensor"))
                   node.op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::sub", "Tensor");
               return graph;
             },
             {});
  expect_found(report, "", 2);
}

TEST(Planted, ABackwardThatDropsASign) {
  const fuzz::Report report =
      search("wrong_backward", {},
             [](const Graph& graph, const CompileContext& context, Executable& inner, Tensors&& inputs) {
               Tensors results = inner.run(std::move(inputs));
               if (context.stage == Stage::Backward && calls(graph, "neg"))
                 for (at::Tensor& r : results)
                   if (r.defined()) r = r.neg();
               return results;
             });
  expect_found(report, "gradient: other values", 1);
}

/// Of functions whose history is one node nothing is conceded.
TEST(Planted, AGradientOfAGradientThatIsWrongInItsLastBits) {
  const fuzz::Report report =
      search("wrong_above", {},
             [](const Graph&, const CompileContext& context, Executable& inner, Tensors&& inputs) {
               Tensors results = inner.run(std::move(inputs));
               if (context.stage == Stage::Backward && context.order > 1)
                 for (at::Tensor& r : results)
                   if (r.defined()) r = r * (1 + 4 * std::numeric_limits<double>::epsilon());
               return results;
             });
  expect_found(report, "gradient of order", 2);
}

TEST(Planted, AWriteThatIsNotMade) {
  const fuzz::Report report = search(
      "no_write", {}, [](const Graph&, const CompileContext& context, Executable& inner, Tensors&& inputs) {
        for (size_t k = 0; k < context.contract.inputs.size() && context.stage != Stage::Backward; ++k)
          if (context.contract.inputs[k].write == InputWrite::InGraph) inputs[k] = inputs[k].clone();
        return inner.run(std::move(inputs));
      });
  expect_found(report, "after call: other values", 1);
}

TEST(Planted, AWriteBackOfTheOldValue) {
  const fuzz::Report report = search(
      "old_value", {}, [](const Graph&, const CompileContext& context, Executable& inner, Tensors&& inputs) {
        Tensors old;
        for (const at::Tensor& t : inputs) old.push_back(t.detach().clone());
        Tensors results = inner.run(std::move(inputs));
        for (size_t k = 0; k < context.contract.inputs.size() && context.stage != Stage::Backward; ++k) {
          const Contract::Input& input = context.contract.inputs[k];
          if (input.write == InputWrite::Returned) results[input.returned] = old[k];
        }
        return results;
      });
  expect_found(report, "after call: other values", 1);
}

TEST(Planted, EqualOutputsThatBecomeOne) {
  const fuzz::Report report = search(
      "merges", {}, [](const Graph&, const CompileContext& context, Executable& inner, Tensors&& inputs) {
        Tensors results = inner.run(std::move(inputs));
        for (size_t a = 0; a < results.size() && context.stage == Stage::Inference; ++a)
          for (size_t b = 0; b < a; ++b)
            if (results[a].defined() && results[b].defined() && results[a].numel() > 0 &&
                results[a].scalar_type() == results[b].scalar_type() && at::equal(results[a], results[b]))
              results[a] = results[b];
        return results;
      });
  expect_found(report, "sharing", 2);
}

TEST(Planted, ARandomNumberTooMany) {
  const fuzz::Report report =
      search("draws", {}, [](const Graph& graph, const CompileContext&, Executable& inner, Tensors&& inputs) {
        if (calls(graph, "native_dropout") || calls(graph, "bernoulli")) at::rand({1});
        return inner.run(std::move(inputs));
      });
  expect_found(report, "", 1);
}

TEST(Planted, ATangentThatIsWritten) {
  const fuzz::Report report =
      search("writes_tangent", {},
             [](const Graph&, const CompileContext& context, Executable& inner, Tensors&& inputs) {
               const at::Tensor last = inputs.empty() ? at::Tensor() : inputs.back();
               Tensors results = inner.run(std::move(inputs));
               if (context.stage == Stage::Backward && last.defined() && last.is_floating_point() &&
                   last.is_non_overlapping_and_dense())
                 at::detach(last).add_(1);
               return results;
             });
  expect_found(report, "tangents of gradient", 1);
}

TEST(Planted, APartitionThatReadsTheWrongValue) {
  Options options;
  options.partition_fn = [](const Joint& joint, const PartitionContext& context) {
    Partition parts = partition_default(joint, context);
    if (parts.saved.size() < 2 ||
        !same_geometry(joint.graph.meta(parts.saved[0]), joint.graph.meta(parts.saved[1])))
      return parts;
    auto exchanged = [&](Value v) {
      return v == parts.saved[0] ? parts.saved[1] : v == parts.saved[1] ? parts.saved[0] : v;
    };
    for (Node& node : parts.backward.nodes())
      for (Operand& argument : node.arguments) map_values(argument, exchanged);
    return parts;
  };
  expect_found(fuzz::run(campaign_of("eager", options)), "gradient", 2);
}

TEST(Planted, ACrash) {
  register_backend(std::make_shared<Spoilt>(
      "crashes", nullptr, [](const Graph& graph, const CompileContext&, Executable& inner, Tensors&& inputs) {
        if (calls(graph, "tanh")) std::raise(SIGABRT);
        return inner.run(std::move(inputs));
      }));
  const fuzz::Failure failure =
      expect_found(fuzz::run_forked(campaign_of("crashes"), 1), "crash: Aborted", 1);
  EXPECT_NE(failure.source.find("tanh"), std::string::npos) << failure.source;
}

/// The same search for a bug in the kernels of the backend `loops`, whose results may be rounded otherwise.
fuzz::Report search_kernels(const std::function<void(loops::Launch&)>& spoil) {
  register_backend(make_loops_backend([=](FusedGraph& fused) {
    for (loops::Fused& group : fused.groups)
      for (loops::Launch& launch : group.launches) spoil(launch);
  }));
  fuzz::Campaign campaign = campaign_of("loops");
  campaign.setup.rounds = true;
  const fuzz::Report report = fuzz::run(campaign);
  register_backend(make_loops_backend());
  return report;
}

TEST(Planted, AKernelThatSubtractsInTheWrongOrder) {
  expect_found(search_kernels([](loops::Launch& launch) {
                 for (loops::Expr& expr : launch.kernel.exprs)
                   if (expr.op == loops::Op::Sub) std::swap(expr.a, expr.b);
               }),
               ": other values", 2);
}

TEST(Planted, AKernelThatFoldsTheWrongWay) {
  expect_found(search_kernels([](loops::Launch& launch) {
                 for (loops::Expr& expr : launch.kernel.exprs)
                   if (expr.op == loops::Op::ReduceSum) expr.op = loops::Op::ReduceMax;
               }),
               ": other values", 2);
}

TEST(Planted, AStrideThatIsTakenForZero) {
  expect_found(search_kernels([](loops::Launch& launch) {
                 const auto rank = size_t(launch.kernel.rank());
                 if (rank > 1) launch.shape[loops::shape_header + rank] = 0;
               }),
               ": other values", 2);
}

TEST(Planted, ANumberThatIsOffByAMillionth) {
  expect_found(search_kernels([](loops::Launch& launch) {
                 for (const loops::Expr& expr : launch.kernel.exprs)
                   if (expr.op == loops::Op::Number && expr.type == loops::Type::F64)
                     launch.numbers[size_t(expr.a)].real *= 1 + 1e-6;
               }),
               ": other values", 2);
}

/// Bugs of the eager backend as it is would be found above in place of those that were planted.
TEST(Planted, NothingIsFoundWhereNothingIs) {
  const fuzz::Report report = fuzz::run(campaign_of("eager"));
  EXPECT_TRUE(report.failures.empty()) << report.failures[0].mismatch.kind << "\n"
                                       << report.failures[0].mismatch.detail << "\n"
                                       << report.failures[0].source;
}

}  // namespace
}  // namespace tandem
