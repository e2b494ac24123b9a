// Code of the user's own around the cache: found again by name and version, kept out without them.
#include <tandem/ops.h>
#include <tandem/passes.h>
#include <torch/library.h>

#include "support/new_process.h"
#include "cache/processes.h"
#include "support/notes.h"

namespace tandem::test {
namespace {

using torch::autograd::AutogradContext;
using NamedRows = Processes;

const Callable curve = [](const Tensors& in) { return Tensors{in[0].sin() * in[0]}; };

TORCH_LIBRARY(tandem_rows, library) { library.def("note(Tensor x, int tag) -> Tensor"); }
TORCH_LIBRARY_IMPL(tandem_rows, CPU, library) { library.impl("note", note); }
TORCH_LIBRARY_IMPL(tandem_rows, Meta, library) { library.impl("note", note_shape); }
at::Tensor call_note(const at::Tensor& x, int64_t tag) {
  at::AutoDispatchBelowAutograd below;
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("tandem_rows::note", "")
      .typed<at::Tensor(const at::Tensor&, int64_t)>()
      .call(x, tag);
}

template <int number>
struct Scaled : torch::autograd::Function<Scaled<number>> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x, double by) {
    call_note(x, 1);
    return x * by;
  }
  static torch::autograd::tensor_list backward(AutogradContext*, torch::autograd::tensor_list gradients) {
    call_note(gradients[0], 2);
    return {gradients[0] * number, at::Tensor()};
  }
};

struct Counts {
  uint64_t hit, miss, bypass;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.hit << " hits, " << counts.miss << " misses, " << counts.bypass << " bypasses";
}
constexpr Counts hit{1, 0, 0}, miss{0, 1, 0}, bypass{0, 0, 1};

/// What a process that trains the function counts; what it computes is right.
Counts trained(const Options& options, const Callable& fn = curve) {
  reset();
  const Tensors inputs{leaf({1, 2, 3})};
  expect_same(train(Compiled(fn, options), inputs), train(fn, inputs));
  return {counter("cache_hit"), counter("cache_miss"), counter("cache_bypass")};
}

TEST_F(NamedRows, M12_M13_CustomFunctionsAreKeptByVersion) {
  register_library("tandem_rows", "1");
  register_side_effect("tandem_rows::note");
  const Callable fn = [](const Tensors& in) { return Tensors{Scaled<3>::apply(in[0], 2.0)}; };
  EXPECT_EQ(trained(options(), fn), bypass);
  const Explanation found = Compiled(fn, options()).explain({leaf({1})});
  EXPECT_EQ(found.cache_state, "bypass");
  EXPECT_TRUE(contains(found.bypass_reason, "Scaled<3>")) << found.bypass_reason;
  EXPECT_TRUE(contains(message<CacheError>([&] { Compiled(fn, strict())({leaf({1})}); }), "Scaled<3>"));
  EXPECT_TRUE(files("entries").empty());
  register_function<Scaled<3>>("1");
  EXPECT_EQ(trained(options(), fn), miss);
  EXPECT_EQ(trained(strict(), fn), hit);
  expect_only_traced();
  register_function<Scaled<3>>("2");
  EXPECT_EQ(trained(options(), fn), miss);
}

/// A function whose author changes its body.
struct Edited : torch::autograd::Function<Edited> {
  static inline double slope = 1;
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x.sin(); }
  static torch::autograd::tensor_list backward(AutogradContext*, torch::autograd::tensor_list gradients) {
    return {gradients[0] * slope};
  }
};

TEST_F(NamedRows, M13_AChangedBodyWithItsOwnVersionMisses) {
  const Callable fn = [](const Tensors& in) { return Tensors{Edited::apply(in[0])}; };
  auto edit = [](double slope, const char* version) {
    Edited::slope = slope;
    register_function<Edited>(version);
  };
  edit(1, "1");
  EXPECT_EQ(trained(options(), fn), miss);
  EXPECT_EQ(trained(strict(), fn), hit);
  edit(2, "2");
  EXPECT_EQ(trained(options(), fn), miss);
  EXPECT_EQ(trained(strict(), fn), hit);
  edit(1, "1");
  EXPECT_EQ(trained(strict(), fn), hit) << "what the first body computed is still there";
}

TEST_F(NamedRows, M13_OperatorsAndSizeArithmeticAreAlwaysCached) {
  const Callable fn = [](const Tensors& in) {
    const int64_t size = in[0].size(0);
    return Tensors{in[0].repeat(2).narrow(0, size / 2, size - 1).reshape({-1, 1}).expand({-1, size + 1}) *
                   double(in[0].numel())};
  };
  EXPECT_EQ(trained(options(), fn), miss);
  EXPECT_EQ(trained(strict(), fn), hit);
}

TEST_F(NamedRows, M37_EffectsHappenInOrderFromTheCacheToo) {
  register_library("tandem_rows", "1");
  register_side_effect("tandem_rows::note");
  register_function<Scaled<5>>("1");
  const Callable fn = [](const Tensors& in) {
    at::Tensor x = in[0] * 2;
    call_note(x.detach(), 7);
    return Tensors{Scaled<5>::apply(x, 3.0)};
  };
  auto noted = [&](const Callable& f) {
    notes().clear();
    train(f, {leaf({1, 2})});
    return notes();
  };
  const std::vector<std::string> want = noted(fn);
  ASSERT_EQ(want.size(), 3u);
  EXPECT_EQ(noted(Compiled(fn, options())), want);
  next_process();
  EXPECT_EQ(noted(Compiled(fn, strict())), want);
  EXPECT_COUNTERS(1u, 0u, 0u);
}

TEST_F(NamedRows, M36_WhatRunsAsItIsPassesTheCacheBy) {
  const Callable fn = [](const Tensors& in) {
    at::Tensor mine = torch::autograd::grad({in[0].exp().sum()}, {in[0]}, {}, true, true)[0];
    mine.register_hook([](at::Tensor g) { return g; });
    return Tensors{mine * in[0]};
  };
  for (int process = 0; process < 2; ++process) EXPECT_EQ(trained(options(), fn), bypass);
  EXPECT_TRUE(files("entries").empty());
  EXPECT_NE(message<CacheError>([&] { Compiled(fn, strict())({leaf({1})}); }), "");
}

TEST_F(NamedRows, M21_PartitionersAreKeptByVersion) {
  auto with = [&](const std::string& name, const std::string& version) {
    Options own = options();
    own.partition_fn = Partitioner(partition_default, name, version);
    return own;
  };
  EXPECT_EQ(trained(with("mine", "1")), miss);
  EXPECT_EQ(trained(with("mine", "1")), hit);
  EXPECT_EQ(trained(with("mine", "2")), miss);
  EXPECT_EQ(trained(with("", "")), bypass);
  EXPECT_EQ(trained(with("mine", "")), bypass);
}

TEST_F(NamedRows, M23_CompilersAreAskedAgainAboutGraphsFromTheCache) {
  size_t asked = 0;
  auto with = [&](const std::string& name, const std::string& version) {
    Options own = options();
    own.backend = "there is no such backend";
    own.fw_compiler = Compiler(
        [&](const Graph& graph, const CompileContext& context) {
          ++asked;
          return find_backend("eager")->compile(graph, context);
        },
        name, version);
    return own;
  };
  EXPECT_EQ(trained(with("mine", "1")), miss);
  EXPECT_TRUE(files("artifacts").empty());
  asked = 0;
  EXPECT_EQ(trained(with("mine", "1")), hit);
  EXPECT_EQ(asked, 2u);
  EXPECT_EQ(counter("joint_trace") + counter("partition"), 0u);
  EXPECT_EQ(trained(with("mine", "2")), miss);
  EXPECT_EQ(trained(with("", "")), bypass);
}

TEST_F(NamedRows, M23_PassesAreKeptByVersion) {
  folder.share();
  IN_A_NEW_PROCESS({
    size_t runs = 0;
    register_pass(Stage::Joint, Pass(
                                    [&](Graph graph) {
                                      ++runs;
                                      return graph;
                                    },
                                    "mine", "1"));
    EXPECT_EQ(trained(options()), miss);
    EXPECT_EQ(runs, 1u);
    EXPECT_EQ(trained(options()), hit);
    EXPECT_EQ(runs, 1u);
    register_pass(Stage::Joint, Pass([](Graph graph) { return graph; }, "mine too", "1"));
    EXPECT_EQ(trained(options()), miss);
    register_pass(Stage::Joint, Pass([](Graph graph) { return graph; }));
    EXPECT_EQ(trained(options()), bypass);
  });
}

/// Runs graphs as the eager backend does; what it says of its code is up to the test.
struct Stubborn final : Backend {
  struct Code final : Executable {
    std::shared_ptr<Executable> eager;
    std::function<std::optional<std::vector<uint8_t>>()> bytes;
    Tensors run(Tensors&& inputs) override { return eager->run(std::move(inputs)); }
    std::optional<std::vector<uint8_t>> artifact() const override { return bytes(); }
  };
  std::function<std::optional<std::vector<uint8_t>>()> bytes;

  std::string name() const override { return "stubborn"; }
  std::string version() const override { return "1"; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    auto code = std::make_shared<Code>();
    code->eager = find_backend("eager")->compile(graph, context);
    code->bytes = bytes;
    return code;
  }
};

TEST_F(NamedRows, M15_WhatHasNoBytesIsFoundAfterCompilingAndNotSaved) {
  auto backend = std::make_shared<Stubborn>();
  register_backend(backend);
  struct Way {
    std::function<std::optional<std::vector<uint8_t>>()> bytes;
    std::string reason;
  };
  for (const Way& way : {Way{[] { return std::nullopt; }, "backend stubborn has no artifacts"},
                         Way{[]() -> std::vector<uint8_t> { throw Error("the kernel of mul is in no file"); },
                             "the kernel of mul is in no file"},
                         Way{[]() -> std::vector<uint8_t> { throw std::runtime_error("out of ink"); },
                             "unexpected: out of ink"}}) {
    backend->bytes = way.bytes;
    const Options stubborn = options({.backend = "stubborn"});
    testing::internal::CaptureStderr();
    {
      at::NoGradGuard no_grad;
      EXPECT_EQ(trained(stubborn), bypass);
    }
    const Counts training = trained(stubborn);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(training.bypass, 1u);
    const std::string culprit = way.reason.substr(way.reason.find(": ") + 1);
    EXPECT_TRUE(contains(said, culprit)) << said;
    EXPECT_EQ(said.find(culprit), said.rfind(culprit)) << said;
    EXPECT_EQ(Compiled(curve, stubborn).explain({leaf({1})}).bypass_reason, way.reason);
    EXPECT_TRUE(contains(message<CacheError>([&] { trained(strict({.backend = "stubborn"})); }), way.reason));
  }
  EXPECT_TRUE(files("entries").empty());
}

/// Its code is the graph, so its bytes say nothing; keeps what it was told, by compiles and by loads.
struct FromTheGraph final : Backend {
  struct Code final : Executable {
    std::shared_ptr<Executable> eager;
    Tensors run(Tensors&& inputs) override { return eager->run(std::move(inputs)); }
    std::optional<std::vector<uint8_t>> artifact() const override { return std::vector<uint8_t>{1}; }
  };
  using Told =
      std::tuple<Stage, size_t, size_t, size_t, std::vector<size_t>, std::vector<size_t>, std::string>;
  std::vector<Told> compiled, loaded;

  std::string name() const override { return "from the graph"; }
  std::string version() const override { return "1"; }
  std::shared_ptr<Executable> make(const Graph& graph, const CompileContext& context,
                                   std::vector<Told>& told) {
    told.emplace_back(context.stage, context.order, context.variant, context.first_tangent,
                      context.static_inputs, context.donated_inputs, graph.hash());
    auto code = std::make_shared<Code>();
    code->eager = find_backend("eager")->compile(graph, context);
    return code;
  }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    return make(graph, context, compiled);
  }
  std::shared_ptr<Executable> load(const std::vector<uint8_t>&, const Graph& graph,
                                   const CompileContext& context) override {
    return make(graph, context, loaded);
  }
};

TEST_F(NamedRows, CodeIsLoadedWithTheGraphAndTheContextThatItWasCompiledFor) {
  auto backend = std::make_shared<FromTheGraph>();
  register_backend(backend);
  EXPECT_EQ(trained(options({.backend = "from the graph"})), miss);
  EXPECT_EQ(trained(options({.backend = "from the graph"})), hit);
  EXPECT_GE(backend->compiled.size(), 2u);
  EXPECT_EQ(backend->loaded, backend->compiled);
}

}  // namespace
}  // namespace tandem::test
