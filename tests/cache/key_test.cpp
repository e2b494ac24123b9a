// What a key is made of: what changes it, what does not, and that it is the same in every process.
#include "key/components.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cache/children.h"
#include "cache/fingerprints.h"
#include "cache/frame.h"
#include "key/option_rows.h"

namespace tandem::test {
namespace {

using cache::component_of;
using cache::Components;
using cache::explain_difference;

const Function sin_of_product = [](const Tensors& in) { return Tensors{(in[0] * in[1]).sin()}; };

Tensors two_leaves() { return {ones_leaf({3, 4}), ones_leaf({3, 4})}; }

// ---- components alone

TEST(Key, IsAHashOfNamesAndHashesInAnyOrder) {
  const Components ab = {component_of("a", "1"), component_of("b", "2")}, ba = {ab[1], ab[0]};
  EXPECT_EQ(cache::key_of(ab), cache::key_of(ba));
  EXPECT_EQ(cache::key_of(ab).size(), 64u);
  EXPECT_NE(cache::key_of(ab), cache::key_of({component_of("a", "2"), component_of("b", "1")}));
  EXPECT_NE(cache::key_of(ab), cache::key_of({ab[0]}));
  Components without_text = ab;
  without_text[0].text.clear();
  EXPECT_EQ(cache::key_of(ab), cache::key_of(without_text));
}

TEST(Key, DifferencesAreNamedDownToTheFirstLine) {
  const Components first = {component_of("same", "x\n"), component_of("trace", "one\ntwo\nthree\n"),
                            component_of("gone", "")};
  const Components second = {component_of("same", "x\n"), component_of("trace", "one\n2\n3\n"),
                             component_of("new", "")};
  EXPECT_EQ(explain_difference(first, first), "");
  EXPECT_EQ(explain_difference(first, second),
            "gone is a component of the first alone\n"
            "new is a component of the second alone\n"
            "trace differs at line 2:\n  first:  two\n  second: 2\n");
}

TEST(Key, DifferencesOfTextsThatEndOrAreMissing) {
  EXPECT_EQ(explain_difference({component_of("a", "x\n")}, {component_of("a", "x\ny\n")}),
            "a differs at line 2:\n  first:  (nothing)\n  second: y\n");
  EXPECT_EQ(explain_difference({component_of("a", "x\n")}, {component_of("a", "x\n\n")}),
            "a differs at line 2:\n  first:  (nothing)\n  second: \n");
  EXPECT_EQ(explain_difference({{"a", "1", ""}}, {{"a", "2", "text"}}), "a differs\n");
  EXPECT_EQ(explain_difference({{"a", "1", "text"}}, {{"a", "2", "text"}}), "a differs\n");
}

TEST(Key, EveryComponentIsPartOfIt) {
  const Fingerprint print = fingerprint_of(sin_of_product, two_leaves());
  ASSERT_EQ(print.obstacle, "");
  ASSERT_EQ(print.key, cache::key_of(print.components));
  for (size_t i = 0; i < print.components.size(); ++i) {
    Components others = print.components;
    others[i].hash = sha256(others[i].text + "and more");
    EXPECT_NE(cache::key_of(others), print.key) << others[i].name;
  }
}

// ---- the program

TEST(Key, M6_SameProgramAndInputsSameKey) {
  EXPECT_EQ(key_of(sin_of_product, two_leaves()), key_of(sin_of_product, two_leaves()));
  const Function again = [](const Tensors& in) { return Tensors{(in[0] * in[1]).sin()}; };
  EXPECT_EQ(key_of(sin_of_product, two_leaves()), key_of(again, two_leaves()));
}

TEST(Key, M9_ChangesWithOrderSizeDtypeAndNumbers) {
  auto sin_cos = [](const Tensors& in) { return Tensors{in[0].sin().cos()}; };
  auto cos_sin = [](const Tensors& in) { return Tensors{in[0].cos().sin()}; };
  auto plus = [](double number) -> Function {
    return [=](const Tensors& in) { return Tensors{in[0] + number}; };
  };
  const Tensors x{torch::ones({3})};
  EXPECT_NE(key_of(sin_cos, x), key_of(cos_sin, x));
  EXPECT_NE(key_of(sin_cos, x), key_of(sin_cos, {torch::ones({4})}));
  EXPECT_NE(key_of(sin_cos, x), key_of(sin_cos, {torch::ones({3}, at::kDouble)}));
  EXPECT_NE(key_of(plus(1), x), key_of(plus(2), x));
  EXPECT_NE(key_of(plus(1), x), key_of(plus(std::nextafter(1.0, 2.0)), x));
}

TEST(Key, ChangesWithWhatIsReturned) {
  auto both = [](bool swapped) -> Function {
    return [=](const Tensors& in) {
      const at::Tensor a = in[0].sin(), b = in[0].cos();
      return swapped ? Tensors{b, a} : Tensors{a, b};
    };
  };
  for (const at::Tensor& x : {ones_leaf({3}), torch::ones({3})})
    EXPECT_NE(key_of(both(false), {x}), key_of(both(true), {x}));
}

TEST(Key, TheFirstDifferingNodeIsNamed) {
  auto program = [](bool other) -> Function {
    return [=](const Tensors& in) { return Tensors{other ? in[0].exp().cos() : in[0].exp().sin()}; };
  };
  const Fingerprint a = fingerprint_of(program(false), {ones_leaf({3})}),
                    b = fingerprint_of(program(true), {ones_leaf({3})});
  EXPECT_EQ(differing(a, b), (std::vector<std::string>{"history", "trace"}));
  const std::string difference = explain_difference(a.components, b.components);
  EXPECT_TRUE(contains(difference, "trace differs at line 2")) << difference;
  EXPECT_TRUE(contains(difference, "aten::sin(") && contains(difference, "aten::cos(") &&
              !contains(difference, "aten::exp("))
      << difference;
  EXPECT_TRUE(contains(difference, "SinBackward0") && contains(difference, "CosBackward0")) << difference;
}

// ---- inputs

TEST(Key, M33_DependsOnWhatInputsAreAndNotOnTheirData) {
  const Function function = [](const Tensors& in) { return Tensors{in[0] * 2}; };
  const std::string key = key_of(function, {torch::zeros({4, 4})});
  EXPECT_EQ(key_of(function, {torch::randn({4, 4})}), key);
  EXPECT_NE(key_of(function, {torch::zeros({4, 4}).t()}), key);
  EXPECT_NE(key_of(function, {torch::zeros({2, 4})}), key);
  EXPECT_NE(key_of(function, {torch::zeros({4, 4}, at::kHalf)}), key);
  EXPECT_NE(key_of(function, {ones_leaf({4, 4})}), key);
  EXPECT_NE(key_of(function, {ones_leaf({4, 4}) + 0}), key_of(function, {ones_leaf({4, 4})}));
  const Function pooled = [](const Tensors& in) { return Tensors{at::avg_pool2d(in[0], 2)}; };
  EXPECT_NE(key_of(pooled, {torch::zeros({2, 4, 4, 4})}),
            key_of(pooled, {torch::zeros({2, 4, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast)}));
}

TEST(Key, DependsOnWhichArgumentsShareMemory) {
  const at::Tensor base = torch::ones({8});
  const std::string apart = key_of(sin_of_product, {torch::ones({4}), torch::ones({4})});
  EXPECT_NE(key_of(sin_of_product, {base.narrow(0, 0, 4), base.narrow(0, 2, 4)}), apart);
  EXPECT_NE(key_of(sin_of_product, {base, base}),
            key_of(sin_of_product, {torch::ones({8}), torch::ones({8})}));
}

TEST(Key, DependsOnWhichTensorsAreCaptured) {
  const at::Tensor captured = torch::ones({3});
  const Function captures = [=](const Tensors& in) { return Tensors{in[0] * captured}; },
                 takes = [](const Tensors& in) { return Tensors{in[0] * in[1]}; };
  const Fingerprint a = fingerprint_of(captures, {torch::ones({3})}),
                    b = fingerprint_of(takes, {torch::ones({3}), torch::ones({3})});
  EXPECT_NE(a.key, b.key);
  EXPECT_EQ(component(a, "trace").hash, component(b, "trace").hash);
}

TEST(Key, M32_ConstantsCountByValueAtAnySize) {
  auto adds = [](int64_t size, float last) -> Function {
    return [=](const Tensors& in) {
      std::vector<float> numbers(size_t(size), 1.0f);
      numbers.back() = last;
      return Tensors{in[0] + torch::from_blob(numbers.data(), {size}).clone()};
    };
  };
  for (int64_t size : {1, 8, 9, 4096}) {
    const Tensors x{torch::ones({size})};
    EXPECT_EQ(key_of(adds(size, 2), x), key_of(adds(size, 2), x)) << size;
    const Fingerprint a = fingerprint_of(adds(size, 2), x), b = fingerprint_of(adds(size, 3), x);
    EXPECT_EQ(differing(a, b), std::vector<std::string>{"trace"}) << size;
    EXPECT_TRUE(contains(explain_difference(a.components, b.components), "constant")) << size;
  }
}

TEST(Key, ParameterValuesAreNoPartOfIt) {
  torch::nn::Linear one(3, 4), other(3, 4);
  auto program = [](torch::nn::Linear layer) -> Function {
    return [=](const Tensors& in) mutable { return Tensors{layer(in[0])}; };
  };
  EXPECT_EQ(key_of(program(one), {torch::ones({2, 3})}), key_of(program(other), {torch::ones({2, 3})}));
}

// ---- options, modes, code of others

struct OptionCase {
  const char* name;
  bool in;  ///< whether changing it changes the key
  std::function<void(Options&)> change;
};

const OptionCase option_cases[] = {
    {"backend", true, [](Options& o) { o.backend = "debug"; }},
    {"cudagraphs", true, [](Options& o) { o.cudagraphs = true; }},
    {"partitioner", true,
     [](Options& o) {
       register_partitioner("key test", Partitioner(&partition_default, "key test", "1"));
       o.partitioner = "key test";
     }},
    {"memory_budget", true, [](Options& o) { o.memory_budget = 0.5; }},
    {"memory_budget_bytes", true, [](Options& o) { o.memory_budget_bytes = 1000; }},
    {"cost_model", true,
     [](Options& o) {
       o.cost_model = CostModel([](const Graph&, const Node&) { return 1.0; }, "key test", "1");
     }},
    {"random", true, [](Options& o) { o.random = "counter"; }},
    {"keep_input_mutations", true, [](Options& o) { o.keep_input_mutations = false; }},
    {"watched_calls", false, [](Options& o) { o.watched_calls = false; }},
    {"must_compile", false, [](Options& o) { o.must_compile = true; }},
    {"debug_asserts", true, [](Options& o) { o.debug_asserts = true; }},
    {"record_locations", true, [](Options& o) { o.record_locations = true; }},
    {"name", false, [](Options& o) { o.name = "other"; }},
    {"watch", false, [](Options& o) { o.watch = {torch::nn::Linear(2, 2).ptr()}; }},
    {"max_signatures", false, [](Options& o) { o.max_signatures = 1; }},
    {"static_arguments", true, [](Options& o) { o.static_arguments = {1}; }},
    {"fw_compiler", true,
     [](Options& o) {
       o.fw_compiler = Compiler([](const Graph&, const CompileContext&) { return nullptr; }, "mine", "1");
     }},
    {"bw_compiler", true,
     [](Options& o) {
       o.bw_compiler = Compiler([](const Graph&, const CompileContext&) { return nullptr; }, "mine", "1");
     }},
    {"inference_compiler", true,
     [](Options& o) {
       o.inference_compiler =
           Compiler([](const Graph&, const CompileContext&) { return nullptr; }, "mine", "1");
     }},
    {"partition_fn", true, [](Options& o) { o.partition_fn = Partitioner(&partition_default, "mine", "1"); }},
    {"decompositions", true, [](Options& o) { o.decompositions = default_decompositions(); }},
    {"cache", false,
     [](Options& o) {
       o.cache = {.strict = true,
                  .directory = "elsewhere",
                  .remote = "redis://other:1",
                  .signing_key = "secret",
                  .max_bytes = 1};
     }},
};

TEST(Key, M8_M35_EveryOptionIsInOrOutByItsRow) {
  const std::string key = key_of(sin_of_product, two_leaves());
  std::vector<std::string> tested, rows;
  for (const OptionCase& one : option_cases) {
    Options options;
    one.change(options);
    const Fingerprint print = fingerprint_of(sin_of_product, two_leaves(), options);
    EXPECT_EQ(print.obstacle, "") << one.name;
    EXPECT_EQ(print.key != key, one.in) << one.name;
    tested.push_back(one.name);
  }
  for (const OptionRow& row : option_rows({})) rows.push_back(row.name);
  EXPECT_EQ(tested, rows);
}

TEST(Key, M21_M23_NamesAndVersionsOfOthersCount) {
  auto with = [](const char* name, const char* version) {
    Options options;
    options.fw_compiler =
        Compiler([](const Graph&, const CompileContext&) { return nullptr; }, name, version);
    options.partition_fn = Partitioner(&partition_default, name, version);
    options.decompositions = DecompositionTable{
        {"aten::sin",
         Decomposition([](Graph&, const tandem::Node&) { return std::vector<Value>{}; }, name, version)}};
    return fingerprint_of(sin_of_product, two_leaves(), options);
  };
  EXPECT_EQ(with("mine", "1").key, with("mine", "1").key);
  for (const Fingerprint& other : {with("mine", "2"), with("yours", "1")})
    EXPECT_EQ(differing(with("mine", "1"), other),
              (std::vector<std::string>{"compilers", "partitioner", "decompositions"}));
}

TEST(Key, M34_OrderOfNamedThingsAndIdentityOfStringsDoNotMatter) {
  const Decomposition rule([](Graph&, const tandem::Node&) { return std::vector<Value>{}; }, "mine", "1");
  auto with = [&](std::initializer_list<const char*> ops) {
    Options options{.backend = std::string("ea") + "ger"};
    options.decompositions.emplace();
    for (const char* op : ops) options.decompositions->emplace(op, rule);
    return key_of(sin_of_product, two_leaves(), options);
  };
  EXPECT_EQ(with({"aten::sin", "aten::cos"}), with({"aten::cos", "aten::sin"}));
  EXPECT_NE(with({"aten::sin", "aten::cos"}), with({"aten::sin"}));
}

struct Registering : Backend {
  std::string version_;
  explicit Registering(std::string version) : version_(std::move(version)) {}
  std::string name() const override { return "key test backend"; }
  std::string version() const override { return version_; }
  std::shared_ptr<Executable> compile(const Graph&, const CompileContext&) override { return nullptr; }
};

TEST(Key, ChangesWithTheBackendsVersion) {
  auto print = [](const char* version) {
    register_backend(std::make_shared<Registering>(version));
    return fingerprint_of(sin_of_product, two_leaves(), {.backend = "key test backend"});
  };
  EXPECT_EQ(differing(print("1"), print("2")), std::vector<std::string>{"compilers"});
}

TEST(Key, CountsThreadsForCodeThatMayBeDividedForThem) {
  register_backend(std::make_shared<Registering>("1"));
  const int threads = at::get_num_threads();
  auto prints = [&](const char* backend, int count) {
    at::set_num_threads(count);
    auto print = fingerprint_of(sin_of_product, two_leaves(), {.backend = backend});
    at::set_num_threads(threads);
    return print;
  };
  EXPECT_EQ(differing(prints("key test backend", 1), prints("key test backend", 2)),
            std::vector<std::string>{"threads"});
  EXPECT_EQ(prints("eager", 1).key, prints("eager", 2).key);
}

/// A way to change a setting of libtorch's, and back.
using Setting = std::pair<std::function<void()>, std::function<void()>>;

template <class... More>
Setting flag(void (at::Context::*set)(bool, More...), bool value, More... more) {
  at::Context& context = at::globalContext();
  return {[=, &context] { (context.*set)(value, more...); },
          [=, &context] { (context.*set)(!value, more...); }};
}

Setting precision(at::Float32Backend backend, at::Float32Op op) {
  auto& context = at::globalContext();
  const at::Float32Precision before = context.float32Precision(backend, op);
  return {[=, &context] { context.setFloat32Precision(backend, op, at::Float32Precision::TF32); },
          [=, &context] { context.setFloat32Precision(backend, op, before); }};
}

TEST(Key, ChangesWithHowNumbersAreComputedForCodeThatMayHaveThatBuiltIn) {
  register_backend(std::make_shared<Registering>("1"));
  using at::Context, at::Float32Backend, at::Float32Op;
  const Setting settings[] = {
      {[] { at::globalContext().setFloat32MatmulPrecision("high"); },
       [] { at::globalContext().setFloat32MatmulPrecision("highest"); }},
      precision(Float32Backend::MKLDNN, Float32Op::CONV),
      precision(Float32Backend::MKLDNN, Float32Op::MATMUL),
      flag(&Context::setAllowFP16ReductionCuBLAS, false, true),
      flag(&Context::setAllowBF16ReductionCuBLAS, false, true),
      flag(&Context::setAllowFP16AccumulationCuBLAS, true),
      flag(&Context::setBenchmarkCuDNN, true),
      flag(&Context::setDeterministicCuDNN, true),
      flag(&Context::setDeterministicMkldnn, true),
      {[] { at::globalContext().setFlushDenormal(true); },
       [] { at::globalContext().setFlushDenormal(false); }},
  };
  auto print = [](const char* backend) {
    return fingerprint_of(sin_of_product, two_leaves(), {.backend = backend});
  };
  for (const auto& [set, reset] : settings) {
    const Fingerprint native = print("key test backend"), interpreted = print("eager");
    set();
    EXPECT_EQ(differing(native, print("key test backend")), std::vector<std::string>{"modes"});
    EXPECT_EQ(print("eager").key, interpreted.key) << "its kernels ask for it when they run";
    reset();
  }
  const std::string modes = component(print("key test backend"), "modes").text;
  EXPECT_TRUE(contains(modes, "float32 precision of matmul on CUDA")) << modes;
}

TEST(Key, ChangesWithWhatDeterminismMeans) {
  const Fingerprint usual = fingerprint_of(sin_of_product, two_leaves());
  at::globalContext().setDeterministicAlgorithms(true, false);
  const Fingerprint strict = fingerprint_of(sin_of_product, two_leaves());
  at::globalContext().setDeterministicAlgorithms(true, true);
  const Fingerprint warns = fingerprint_of(sin_of_product, two_leaves());
  at::globalContext().setDeterministicAlgorithms(false, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  const Fingerprint unfilled = fingerprint_of(sin_of_product, two_leaves());
  at::globalContext().setDeterministicFillUninitializedMemory(true);
  EXPECT_EQ(differing(strict, warns), std::vector<std::string>{"modes"});
  EXPECT_EQ(differing(usual, unfilled), std::vector<std::string>{"modes"});
}

TEST(Key, ChangesWithTheModesOfTheThread) {
  const auto inputs = two_leaves();
  const Fingerprint usual = fingerprint_of(sin_of_product, inputs);
  {
    at::globalContext().setDeterministicAlgorithms(true, true);
    const Fingerprint deterministic = fingerprint_of(sin_of_product, inputs);
    at::globalContext().setDeterministicAlgorithms(false, false);
    EXPECT_EQ(differing(usual, deterministic), std::vector<std::string>{"modes"});
    EXPECT_TRUE(contains(explain_difference(usual.components, deterministic.components),
                         "deterministic algorithms: on"));
  }
  {
    at::set_default_dtype(caffe2::TypeMeta::Make<double>());
    const Fingerprint wide = fingerprint_of(sin_of_product, inputs);
    at::set_default_dtype(caffe2::TypeMeta::Make<float>());
    EXPECT_EQ(differing(usual, wide), std::vector<std::string>{"modes"});
  }
  at::NoGradGuard without_grad;
  EXPECT_NE(usual.key, key_of(sin_of_product, inputs));
}

TEST(Key, LocationsCountOnlyWhereTheyAreAskedFor) {
  const Function here = [](const Tensors& in) { return Tensors{in[0].sin()}; };
  const Function there = [](const Tensors& in) { return Tensors{in[0].sin()}; };
  const Tensors x{torch::ones({2})};
  EXPECT_EQ(key_of(here, x), key_of(there, x));
  const Fingerprint a = fingerprint_of(here, x, {.record_locations = true}),
                    b = fingerprint_of(there, x, {.record_locations = true});
  EXPECT_EQ(component(a, "trace").text, component(b, "trace").text);
#ifdef TANDEM_HAVE_LIBDW
  EXPECT_EQ(differing(a, b), std::vector<std::string>{"locations"});
#endif
}

// ---- machines and builds

TEST(Key, M41_NamesTheMachineAndBothBuilds) {
  const Fingerprint print = fingerprint_of(sin_of_product, two_leaves());
  EXPECT_TRUE(contains(component(print, "libtorch").text, std::string("version ") + TORCH_VERSION));
  EXPECT_TRUE(std::regex_search(component(print, "tandem").text, std::regex("code [0-9a-f]{64}\n")))
      << component(print, "tandem").text;
  const std::string machine = component(print, "machine").text;
  EXPECT_TRUE(contains(machine, "model") || contains(machine, "CPU part")) << machine;
  EXPECT_TRUE(contains(machine, "features: ")) << machine;
  EXPECT_FALSE(contains(machine, "MHz") || contains(machine, "hypervisor")) << machine;
}

TEST(Key, NamesTheGraphicsProcessorsThatTheTraceUses) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a CUDA device";
  const std::string machine =
      component(fingerprint_of(sin_of_product, {torch::ones({3}, at::kCUDA), torch::ones({3}, at::kCUDA)}),
                "machine")
          .text;
  EXPECT_TRUE(std::regex_search(machine, std::regex("cuda:0: .+, compute capability [1-9][0-9]*\\.[0-9]")))
      << machine;
  EXPECT_FALSE(contains(machine, "features: ") || contains(machine, "unknown")) << machine;
}

// ---- other processes

/// Several programs, so that what varies from process to process has many places to show.
std::vector<std::pair<std::string, Fingerprint>> sample() {
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::GELU(), torch::nn::BatchNorm1d(8),
                              torch::nn::Linear(8, 2));
  const at::Tensor base = torch::randn({8}).requires_grad_();
  return {
      {"product", fingerprint_of(sin_of_product, two_leaves())},
      {"model", fingerprint_of([&](const Tensors& in) { return Tensors{model->forward(in[0]).softmax(-1)}; },
                               {torch::randn({5, 4})})},
      {"constant",
       fingerprint_of([](const Tensors& in) { return Tensors{in[0] + torch::tensor({1.0f, 2.0f, 3.0f})}; },
                      {ones_leaf({3})})},
      {"views",
       fingerprint_of(
           [](const Tensors& in) { return Tensors{in[0].view({2, 4}), in[0].narrow(0, 1, 2).exp()}; },
           {base * 2})},
      {"writes", fingerprint_of(
                     [](const Tensors& in) {
                       at::Tensor a = in[0].clone();
                       a[0].mul_(in[1]);
                       in[2].add_(1);
                       return Tensors{a, in[2].sin()};
                     },
                     {ones_leaf({2, 3}), ones_leaf({3}), torch::zeros({3})})},
      {"everything",
       fingerprint_of(sin_of_product, two_leaves(), {.decompositions = default_decompositions()})},
  };
}

std::string text_of_sample() {
  std::string text;
  for (const auto& [name, print] : sample()) {
    text += name + ' ' + print.key + ' ' + print.obstacle + '\n';
    for (const cache::Component& one : print.components)
      text += "  " + one.name + ' ' + one.hash + ' ' + sha256(one.text) + '\n';
  }
  return text;
}

TEST(DISABLED_Child, PrintsKeys) {
  // Memory lies elsewhere, and autograd has numbered other nodes before.
  const char* before = std::getenv("TANDEM_TEST_BEFORE");
  std::vector<std::unique_ptr<char[]>> held;
  for (int i = 0; before && i < std::atoi(before); ++i) {
    held.push_back(std::make_unique<char[]>(size_t(i) * 7 + 1));
    (ones_leaf({2}) * 2).sum().backward();
    key_of(sin_of_product, {ones_leaf({2}), ones_leaf({2})});
  }
  print_to_parent(text_of_sample());
}

// Both are new processes: in this one other tests have declared effects and versions, which are parts of
// keys.
TEST(Key, IsTheSameInEveryProcess) {
  const std::string one = printed_by_child("PrintsKeys");
  ASSERT_TRUE(contains(one, "product ")) << one;
  EXPECT_EQ(printed_by_child("PrintsKeys",
                             "TANDEM_TEST_BEFORE=37 MALLOC_PERTURB_=85 MALLOC_ARENA_MAX=1 PYTHONHASHSEED=7 "
                             "GLIBCXX_TUNABLES=x LANG=de_DE.UTF-8 HOME=/nowhere USER=nobody",
                             "/"),
            one);
}

// ---- what is written about it

TEST(Key, ItsPartsAreDocumented) {
  std::ifstream file(std::string(TANDEM_SOURCE_DIR) + "/docs/cache.md");
  std::stringstream text;
  text << file.rdbuf();
  const Fingerprint print = fingerprint_of(sin_of_product, two_leaves(), {.record_locations = true});
  for (const cache::Component& one : print.components)
    EXPECT_TRUE(contains(text.str(), "| `" + one.name + "` |")) << one.name;
  for (const OptionRow& row : option_rows({}))
    EXPECT_TRUE(contains(text.str(), "| `" + std::string(row.name) + "` | " + (row.text ? "in" : "out") +
                                         " | " + row.reason + " |"))
        << row.name;
}

}  // namespace
}  // namespace tandem::test
