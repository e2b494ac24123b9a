// What is not cached, and the reason that is given for it.
#include "key/cacheability.h"

#include <ATen/CPUGeneratorImpl.h>

#include "aot/joint.h"
#include "cache/children.h"
#include "cache/fingerprints.h"
#include "support/new_process.h"

namespace {

at::Tensor scale(const at::Tensor& x) { return x * 2; }
at::Tensor scale_unversioned(const at::Tensor& x) { return x * 3; }

TORCH_LIBRARY(tandem_versioned, library) { library.def("scale(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(tandem_versioned, CPU, library) { library.impl("scale", scale); }
TORCH_LIBRARY_IMPL(tandem_versioned, Meta, library) { library.impl("scale", scale); }
TORCH_LIBRARY(tandem_unversioned, library) { library.def("scale(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(tandem_unversioned, CPU, library) { library.impl("scale", scale_unversioned); }
TORCH_LIBRARY_IMPL(tandem_unversioned, Meta, library) { library.impl("scale", scale_unversioned); }

at::Tensor call(const char* op, const at::Tensor& x) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(op, "").typed<at::Tensor(const at::Tensor&)>().call(
      x);
}

}  // namespace

namespace tandem::test {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

template <int number>
struct Custom : torch::autograd::Function<Custom<number>> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x.sin(); }
  static tensor_list backward(AutogradContext*, tensor_list gradients) { return gradients; }
};

template <class F>
Function applied() {
  return [](const Tensors& in) { return Tensors{F::apply(in[0]) * 2}; };
}

TEST(Cacheability, OrdinaryProgramsAreCached) {
  EXPECT_EQ(
      fingerprint_of(
          [](const Tensors& in) { return Tensors{in[0].view({3, 2}).matmul(in[0]).sum(in[0].size(0) - 2)}; },
          {ones_leaf({2, 3})})
          .obstacle,
      "");
}

TEST(Cacheability, M13_CustomFunctionsNeedAVersion) {
  const Fingerprint without = fingerprint_of(applied<Custom<1>>(), {ones_leaf({3})});
  EXPECT_TRUE(contains(without.obstacle, "Custom<1>") && contains(without.obstacle, "register_function<"))
      << without.obstacle;
  register_function<Custom<1>>("1");
  const Fingerprint first = fingerprint_of(applied<Custom<1>>(), {ones_leaf({3})});
  EXPECT_EQ(first.obstacle, "");
  EXPECT_EQ(first.key, fingerprint_of(applied<Custom<1>>(), {ones_leaf({3})}).key);
  register_function<Custom<1>>("2");
  const Fingerprint second = fingerprint_of(applied<Custom<1>>(), {ones_leaf({3})});
  EXPECT_EQ(second.obstacle, "");
  EXPECT_NE(first.key, second.key);
}

TEST(Cacheability, CustomFunctionsWithoutGradientNeedNone) {
  EXPECT_EQ(fingerprint_of(applied<Custom<2>>(), {torch::ones({3})}).obstacle, "");
}

TEST(Cacheability, OtherFunctionsVersionsDoNotCountWithoutCustomFunctions) {
  const Function plain = [](const Tensors& in) { return Tensors{in[0].sin()}; };
  const std::string before = key_of(plain, {ones_leaf({3})});
  register_function<Custom<3>>("1");
  register_library("tandem_elsewhere", "1");
  EXPECT_EQ(key_of(plain, {ones_leaf({3})}), before);
}

struct HoldsCapsule : torch::autograd::Function<HoldsCapsule> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->saved_data["held"] = c10::IValue::make_capsule(c10::make_intrusive<torch::CustomClassHolder>());
    return x.sin();
  }
  static tensor_list backward(AutogradContext*, tensor_list gradients) { return gradients; }
};

TEST(Cacheability, CustomFunctionsThatKeepSomethingWithoutText) {
  register_function<HoldsCapsule>("1");
  const std::string reason = fingerprint_of(applied<HoldsCapsule>(), {ones_leaf({3})}).obstacle;
  EXPECT_TRUE(contains(reason, "HoldsCapsule") && contains(reason, "Capsule in saved_data")) << reason;
}

/// A node that is nobody's custom function.
struct Handmade : torch::autograd::Node {
  using Node::Node;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return std::move(gradients);
  }
};

TEST(Cacheability, NodesOfOthersAreNotLookedInto) {
  const Function function = [](const Tensors& in) {
    at::Tensor out;
    {
      at::NoGradGuard guard;
      out = in[0].sin();
    }
    auto node = make_node<Handmade>(torch::autograd::collect_next_edges(in[0]));
    torch::autograd::create_gradient_edge(out, NodePtr(node));
    return Tensors{out * 2};
  };
  const std::string reason = fingerprint_of(function, {ones_leaf({3})}).obstacle;
  EXPECT_TRUE(contains(reason, "Handmade")) << reason;
}

TEST(Cacheability, HooksInsideTheFunction) {
  const Function hooked = [](const Tensors& in) {
    const at::Tensor middle = in[0].sin();
    middle.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
    return Tensors{middle * 2};
  };
  const Fingerprint print = fingerprint_of(hooked, {ones_leaf({3})});
  EXPECT_TRUE(contains(print.obstacle, "hook") && contains(print.obstacle, "SinBackward0")) << print.obstacle;
}

TEST(Cacheability, LibrariesNeedAVersion) {
  auto calling = [](const char* op) -> Function {
    return [=](const Tensors& in) { return Tensors{call(op, in[0])}; };
  };
  const Tensors x{torch::ones({3})};
  const std::string reason = fingerprint_of(calling("tandem_unversioned::scale"), x).obstacle;
  EXPECT_TRUE(contains(reason, "tandem_unversioned::scale") &&
              contains(reason, "register_library(\"tandem_unversioned\""))
      << reason;
  register_library("tandem_versioned", "1");
  const Fingerprint first = fingerprint_of(calling("tandem_versioned::scale"), x);
  EXPECT_EQ(first.obstacle, "");
  register_library("tandem_versioned", "2");
  EXPECT_EQ(differing(first, fingerprint_of(calling("tandem_versioned::scale"), x)),
            std::vector<std::string>{"libraries"});
}

TEST(Cacheability, DeclaredEffectsCount) {
  register_library("tandem_versioned", "1");
  const Function function = [](const Tensors& in) { return Tensors{call("tandem_versioned::scale", in[0])}; };
  const Fingerprint before = fingerprint_of(function, {torch::ones({3})});
  register_side_effect("tandem_versioned::scale");
  EXPECT_EQ(differing(before, fingerprint_of(function, {torch::ones({3})})),
            std::vector<std::string>{"libraries"});
}

struct CallsInBackward : torch::autograd::Function<CallsInBackward> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x.sin(); }
  static tensor_list backward(AutogradContext*, tensor_list gradients) {
    return {call("tandem_unversioned::scale", gradients[0])};
  }
};

TEST(Cacheability, LibrariesThatOnlyTheBackwardCallsAreFoundInItsGraph) {
  register_function<CallsInBackward>("1");
  Traced trace = traced(applied<CallsInBackward>(), {ones_leaf({3})});
  const Plan plan = plan_calls(trace, {}, true);
  EXPECT_EQ(fingerprint(trace, plan, {}).obstacle, "");
  const Order order = first_order(trace, plan);
  const auto joint = make_joint_graph(trace, plan, order, expected_variant(order));
  ASSERT_TRUE(joint);
  EXPECT_TRUE(contains(find_obstacle(joint->joint.graph), "tandem_unversioned::scale"));
}

TEST(Cacheability, LibrariesRegisteredForABackwardCountInItsKey) {
  register_function<CallsInBackward>("1");
  register_library("tandem_for_backwards", "1");
  const Fingerprint first = fingerprint_of(applied<CallsInBackward>(), {ones_leaf({3})});
  register_library("tandem_for_backwards", "2");
  EXPECT_EQ(differing(first, fingerprint_of(applied<CallsInBackward>(), {ones_leaf({3})})),
            std::vector<std::string>{"libraries"});
}

TEST(Cacheability, DataMadeInsideHasALimit) {
  auto adds = [](int64_t size) -> Function {
    return [=](const Tensors& in) {
      std::vector<float> numbers(size_t(size), 1.0f);
      return Tensors{in[0] + torch::from_blob(numbers.data(), {size}).clone()};
    };
  };
  const int64_t most = most_constant_bytes / int64_t(sizeof(float));
  EXPECT_EQ(fingerprint_of(adds(most), {torch::ones({most})}).obstacle, "");
  const Fingerprint over = fingerprint_of(adds(most + 1), {torch::ones({most + 1})});
  EXPECT_TRUE(contains(over.obstacle, std::to_string(most_constant_bytes + 4) + " bytes")) << over.obstacle;
  EXPECT_EQ(over.key, "");
}

TEST(Cacheability, GeneratorsOfTheProgram) {
  at::Generator own = at::detail::createCPUGenerator(1);
  const Function draws = [&](const Tensors& in) { return Tensors{in[0] + torch::rand({3}, own)}; };
  const std::string reason = fingerprint_of(draws, {torch::ones({3})}).obstacle;
  EXPECT_TRUE(contains(reason, "generator")) << reason;
  EXPECT_EQ(
      fingerprint_of([](const Tensors& in) { return Tensors{in[0] + torch::rand({3})}; }, {torch::ones({3})})
          .obstacle,
      "");
}

struct UnnamedCase {
  const char* says;
  std::function<void(Options&, const char* name, const char* version)> give;
};

const UnnamedCase unnamed_cases[] = {
    {"compiler of the forward",
     [](Options& o, const char* name, const char* version) {
       o.fw_compiler = Compiler([](const Graph&, const CompileContext&) { return nullptr; }, name, version);
     }},
    {"compiler of the backward",
     [](Options& o, const char* name, const char* version) {
       o.bw_compiler = Compiler([](const Graph&, const CompileContext&) { return nullptr; }, name, version);
     }},
    {"compiler of inference",
     [](Options& o, const char* name, const char* version) {
       o.inference_compiler =
           Compiler([](const Graph&, const CompileContext&) { return nullptr; }, name, version);
     }},
    {"partitioner",
     [](Options& o, const char* name, const char* version) {
       o.partition_fn = Partitioner(&partition_default, name, version);
     }},
    {"decomposition of aten::sin",
     [](Options& o, const char* name, const char* version) {
       o.decompositions = DecompositionTable{
           {"aten::sin",
            Decomposition([](Graph&, const tandem::Node&) { return std::vector<Value>{}; }, name, version)}};
     }},
};

TEST(Cacheability, M12_M21_CodeOfOthersNeedsNameAndVersion) {
  for (const UnnamedCase& one : unnamed_cases) {
    auto reason = [&](const char* name, const char* version) {
      Options options;
      one.give(options, name, version);
      return fingerprint_of([](const Tensors& in) { return Tensors{in[0].sin()}; }, {ones_leaf({3})}, options)
          .obstacle;
    };
    EXPECT_EQ(reason("mine", "1"), "") << one.says;
    EXPECT_TRUE(contains(reason("", "1"), one.says) && contains(reason("", "1"), "no name"))
        << reason("", "1");
    EXPECT_TRUE(contains(reason("mine", ""), one.says) && contains(reason("mine", ""), "no version"))
        << reason("mine", "");
  }
}

// Passes are registered for good, so each of these has a process to itself.

Fingerprint with_passes(std::initializer_list<std::pair<Stage, const char*>> passes,
                        const char* version = "1") {
  for (const auto& [stage, name] : passes)
    register_pass(stage, Pass([](Graph graph) { return graph; }, name, version));
  return fingerprint_of([](const Tensors& in) { return Tensors{in[0].sin()}; }, {ones_leaf({3})});
}

TEST(Cacheability, M23_PassesNeedAName) {
  IN_A_NEW_PROCESS({
    EXPECT_EQ(with_passes({{Stage::Joint, "first"}}).obstacle, "");
    EXPECT_TRUE(contains(with_passes({{Stage::Backward, ""}}).obstacle, "a pass over backwards has no name"));
  });
}

TEST(DISABLED_Child, PrintsPassKeys) {
  const std::string order = std::getenv("TANDEM_TEST_PASSES");
  const Fingerprint print = order == "ab"   ? with_passes({{Stage::Joint, "a"}, {Stage::Joint, "b"}})
                            : order == "ba" ? with_passes({{Stage::Joint, "b"}, {Stage::Joint, "a"}})
                            : order == "a2" ? with_passes({{Stage::Joint, "a"}, {Stage::Joint, "b"}}, "2")
                                            : with_passes({{Stage::Joint, "a"}, {Stage::Forward, "b"}});
  print_to_parent(component(print, "passes").hash + print.key + print.obstacle);
}

TEST(Cacheability, M23_OrderStageAndVersionOfPassesCount) {
  auto key = [](const std::string& order) {
    return printed_by_child("PrintsPassKeys", "TANDEM_TEST_PASSES=" + order);
  };
  const std::string usual = key("ab");
  EXPECT_EQ(usual.size(), 128u) << usual;
  EXPECT_EQ(usual, key("ab"));
  for (const char* other : {"ba", "a2", "af"}) {
    EXPECT_EQ(key(other).size(), 128u) << other;
    EXPECT_NE(usual, key(other)) << other;
  }
}

TEST(Cacheability, RegistrationsThatMakeNoSenseAreRefused) {
  EXPECT_THROW(register_function<Custom<4>>(""), Error);
  EXPECT_THROW(register_library("mylib", ""), Error);
  EXPECT_THROW(register_library("mylib::scale", "1"), Error);
  EXPECT_THROW(register_library("aten", "1"), Error);
}

}  // namespace
}  // namespace tandem::test
