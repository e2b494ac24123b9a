#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include "frontend/compare.h"

#include <filesystem>

namespace tandem {
namespace {

using c10::IValue;
using test::counter;
using test::gradients;
using test::message;
using test::same_tensor;

/// A script that has been to a file and back, as a user's has.
torch::jit::Module from_file(const torch::jit::Module& module) {
  auto path =
      std::filesystem::temp_directory_path() / ("tandem_script_test_" + std::to_string(getpid()) + ".pt");
  module.save(path.string());
  auto loaded = torch::jit::load(path.string());
  std::filesystem::remove(path);
  return loaded;
}

/// The names of torch and, what scripts from Python can say and plain source cannot, `fork`.
struct Names : torch::jit::Resolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name,
                                                         torch::jit::GraphFunction& function,
                                                         const torch::jit::SourceRange& where) override {
    return name == "fork" ? torch::jit::SpecialFormValue::create(torch::jit::prim::fork)
                          : torch::jit::nativeResolver()->resolveValue(name, function, where);
  }
};

torch::jit::Module script(const std::string& source) {
  torch::jit::Module module("Net");
  module.define(source, std::make_shared<Names>());
  return from_file(module);
}

torch::jit::Module linear_script() {
  torch::manual_seed(3);
  torch::jit::Module inner("Inner");
  inner.register_parameter("weight", torch::randn({4, 3}, torch::requires_grad()), false);
  inner.register_attribute("training", c10::BoolType::get(), true);
  inner.register_parameter("bias", torch::randn({4}, torch::requires_grad()), false);
  inner.define("def forward(self, x):\n  return torch.linear(x, self.weight, self.bias)\n");
  torch::jit::Module module("Net");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_module("inner", inner);
  module.register_buffer("count", torch::zeros({}));
  module.define(R"(
def forward(self, x, scale: float = 1.0, mask: Optional[Tensor] = None):
  y = torch.dropout(self.inner.forward(x), 0.5, self.training).tanh()
  self.count.add_(1)
  if mask is not None:
    y = y * mask
  for i in range(int(scale)):
    y = y + i
  return y * scale
)");
  return from_file(module);
}

/// The script as TorchScript itself runs it, operator by operator: its optimiser has derivative formulas of
/// its own, which round differently.
IValue eager(torch::jit::Module& module, std::vector<IValue> arguments) {
  torch::jit::GraphOptimizerEnabledGuard no_optimizer(false);
  return module.forward(std::move(arguments));
}

Tensors parameters(const torch::jit::Module& module) {
  Tensors all;
  for (const at::Tensor& parameter : module.parameters()) all.push_back(parameter);
  return all;
}

TEST(CompileScript, GivesWhatTheScriptGivesWithGradients) {
  auto module = linear_script();
  auto fast = compile(module);
  at::Tensor x = torch::randn({2, 3}).requires_grad_(), mask = torch::rand({2, 4});
  Tensors leaves = parameters(module);
  leaves.push_back(x);
  for (std::vector<IValue> arguments : {std::vector<IValue>{x}, {x, 3.0}, {x, 2.0, mask}}) {
    torch::manual_seed(7);
    at::Tensor got = fast(arguments).toTensor();
    torch::manual_seed(7);
    at::Tensor want = eager(module, arguments).toTensor();
    EXPECT_TRUE(same_tensor(got, want));
    test::expect_same(gradients(got, leaves), gradients(want, leaves));
  }
  EXPECT_EQ(module.attr("count").toTensor().item<float>(), 6) << "the buffer is the module's own";
}

TEST(CompileScript, TrainsLikeTheScript) {
  auto reference = linear_script(), copy = linear_script();
  auto fast = compile(copy);
  torch::optim::SGD eager_optimizer(parameters(reference), 0.1), optimizer(parameters(*fast.get()), 0.1);
  at::Tensor x = torch::randn({2, 3});
  auto step = [&x](auto&& forward, torch::optim::SGD& optimiser) {
    torch::manual_seed(11);
    optimiser.zero_grad();
    at::Tensor loss = forward(std::vector<IValue>{x}).toTensor().pow(2).sum();
    loss.backward();
    optimiser.step();
    return loss;
  };
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(
        same_tensor(step(fast, optimizer),
                    step([&](std::vector<IValue> in) { return eager(reference, in); }, eager_optimizer)))
        << i;
  test::expect_same(parameters(copy), parameters(reference));
}

TEST(CompileScript, TrainAndEvalOfEverySubmoduleAreNoticed) {
  auto module = linear_script();
  auto fast = compile(module);
  at::Tensor x = torch::randn({8, 3});
  fast(x);
  uint64_t before = counter("trace");
  fast->eval();
  EXPECT_TRUE(same_tensor(fast(x).toTensor(), module.forward({x}).toTensor()));
  EXPECT_EQ(counter("trace"), before + 1);
  module.train();
  fast(x);
  EXPECT_EQ(counter("trace"), before + 1) << "seen before";
}

TEST(CompileScript, KeywordsAndPositionsMeanTheSame) {
  auto module = linear_script();
  module.eval();
  auto fast = compile(module);
  at::Tensor x = torch::randn({2, 3}), mask = torch::rand({2, 4});
  at::Tensor want = module.forward({x, 2.0, mask}).toTensor();
  EXPECT_TRUE(same_tensor(fast({x}, {{"scale", 2.0}, {"mask", mask}}).toTensor(), want));
  EXPECT_TRUE(same_tensor(fast(x, 2.0, mask).toTensor(), want));
  EXPECT_TRUE(same_tensor(fast({}, {{"x", x}, {"scale", 2.0}, {"mask", mask}}).toTensor(), want));
}

TEST(CompileScript, NestedListsTuplesAndDictsGoInAndOut) {
  auto module = script(R"(
def forward(self, xs: List[Tensor], named: Dict[str, Tuple[Tensor, int]], flag: bool):
  total = xs[0]
  for i in range(1, len(xs)):
    total = total + xs[i]
  out: Dict[str, List[Tensor]] = {}
  for key, value in named.items():
    t, n = value
    out[key] = [t * n, total]
  none: Optional[Tensor] = None
  if flag:
    none = total * 2
  return out, (total, 3, "text"), none, [1.5, 2.5]
)");
  auto fast = compile(module);
  at::Tensor a = torch::randn(2).requires_grad_(), b = torch::randn(2);
  auto call = [&](auto&& forward, bool flag, int64_t number) {
    c10::List<at::Tensor> list({a, b, a});
    auto tuple = c10::TupleType::create({c10::TensorType::get(), c10::IntType::get()});
    c10::impl::GenericDict named(c10::StringType::get(), tuple);
    named.insert("k", c10::ivalue::Tuple::create({IValue(b), IValue(number)}));
    return forward(std::vector<IValue>{list, named, flag});
  };
  for (auto [flag, number] : {std::pair(true, 2), {false, 2}, {true, 5}, {true, 2}}) {
    IValue got = call(fast, flag, number),
           want = call([&](std::vector<IValue> in) { return module.forward(in); }, flag, number);
    EXPECT_TRUE(got.type()->isSubtypeOf(*want.type()))
        << got.type()->repr_str() << " and " << want.type()->repr_str();
    const auto &g = got.toTupleRef().elements(), &w = want.toTupleRef().elements();
    ASSERT_EQ(g.size(), w.size());
    auto lists = [](const IValue& dict) { return dict.toGenericDict().at("k").toTensorVector(); };
    test::expect_same(lists(g[0]), lists(w[0]));
    EXPECT_TRUE(
        same_tensor(g[1].toTupleRef().elements()[0].toTensor(), w[1].toTupleRef().elements()[0].toTensor()));
    EXPECT_EQ(g[1].toTupleRef().elements()[1].toInt(), 3);
    EXPECT_EQ(g[1].toTupleRef().elements()[2].toStringRef(), "text");
    EXPECT_EQ(g[2].isNone(), !flag);
    EXPECT_TRUE(same_tensor(flag ? g[2].toTensor() : a, flag ? w[2].toTensor() : a));
    EXPECT_EQ(g[3].toDoubleVector(), w[3].toDoubleVector());
  }
}

TEST(CompileScript, OperatorsArriveOneByOneEvenAfterTheScriptWasOptimised) {
  auto module = script("def forward(self, x):\n  return (x.sigmoid() * x).tanh()\n");
  at::Tensor x = torch::randn(4).requires_grad_();
  for (int i = 0; i < 4; ++i) module.forward({x});
  auto fast = compile(module);
  std::string graph = fast.explain(x).forward.to_string();
  for (const char* op : {"aten::sigmoid", "aten::mul", "aten::tanh"})
    EXPECT_NE(graph.find(op), graph.npos) << op << " in\n" << graph;
  at::Tensor got = fast(x).toTensor(), want = (x.sigmoid() * x).tanh();
  EXPECT_TRUE(same_tensor(got, want));
  test::expect_same(gradients(got, {x}), gradients(want, {x}));
}

TEST(CompileScript, ContractsNameTheScriptsParameters) {
  torch::jit::Module module("named");
  module.register_parameter("scale", torch::randn(4), false);
  module.register_buffer("shift", torch::randn(4));
  module.define("def forward(self, x):\n  return x * self.scale + self.shift\n");
  std::string contract = compile(module).explain(torch::randn(4)).contract.to_string();
  EXPECT_NE(contract.find("parameter scale"), contract.npos) << contract;
  EXPECT_NE(contract.find("buffer shift"), contract.npos) << contract;
}

TEST(CompileScript, ForkAndWaitRunInPlace) {
  auto module = script(
      "def branch(self, x):\n  return x.sin()\ndef forward(self, x):\n  f = fork(self.branch, x)\n  return "
      "torch.wait(f) + x\n");
  auto fast = compile(module);
  at::Tensor x = torch::randn(3);
  EXPECT_TRUE(same_tensor(fast(x).toTensor(), x.sin() + x));
}

TEST(CompileScript, AReplacedParameterIsNoticed) {
  auto module = linear_script();
  module.eval();
  auto fast = compile(module);
  at::Tensor x = torch::randn({2, 3});
  fast(x);
  // kept, so that only its place in the module tells
  at::Tensor old = module.attr("inner").toModule().attr("bias").toTensor();
  module.attr("inner").toModule().setattr("bias", torch::ones({4}));
  EXPECT_TRUE(same_tensor(fast(x).toTensor(), module.forward({x}).toTensor()));
}

TEST(CompileScript, CallsThatDoNotFitNameTheScriptsArgument) {
  auto fast = compile(linear_script());
  at::Tensor x = torch::randn({2, 3});
  auto refused = [&](std::vector<IValue> arguments, Keywords keywords = {}) {
    return message<ContractError>([&] { fast(arguments, keywords); });
  };
  EXPECT_EQ(refused({}), "argument 'x' of forward(x, scale, mask) is missing; it has no default.");
  EXPECT_EQ(refused({x, 1.0, x, x}), "forward(x, scale, mask) takes at most 3 arguments, but 4 were given.");
  EXPECT_EQ(refused({x}, {{"msk", x}}),
            "forward(x, scale, mask) has no argument 'msk'; use one of its own names.");
  EXPECT_EQ(refused({x, 1.0}, {{"scale", 2.0}}),
            "argument 'scale' of forward is given twice, by position and by name; leave one out.");
  EXPECT_EQ(refused({3}), "argument 'x' of forward: expected Tensor, got int.");
  EXPECT_EQ(refused({x}, {{"mask", 3}}), "argument 'mask' of forward: expected Optional[Tensor], got int.");
}

TEST(CompileScript, AnUntraceableCallIsNamedWithTheScriptsOwnLine) {
  torch::jit::Module module("Net");
  module.define("def forward(self, x):\n  y = x * 2\n  n = int(y.sum())\n  return y + n\n");
  auto fast = compile(module, {.must_compile = true});
  std::string sentence = message<UnsupportedError>([&] { fast(torch::ones(2)); });
  EXPECT_NE(sentence.find("item"), sentence.npos) << sentence;
  EXPECT_NE(sentence.find(":3"), sentence.npos) << sentence;
  auto loaded = compile(from_file(module), {.must_compile = true});
  sentence = message<UnsupportedError>([&] { loaded(torch::ones(2)); });
  EXPECT_NE(sentence.find("item"), sentence.npos) << sentence;
  EXPECT_NE(sentence.find(":3"), sentence.npos) << sentence;
}

TEST(CompileScript, AssignedAttributesAreRefusedAndPutBackOrHappenAsTheyDo) {
  torch::jit::Module module("Net");
  module.register_attribute("calls", c10::IntType::get(), 0);
  module.register_buffer("last", torch::zeros(2));
  module.define("def forward(self, x):\n  self.last = x\n  self.calls = self.calls + 1\n  return x\n");
  auto fast = compile(module, {.must_compile = true});
  std::string sentence = message<UnsupportedError>([&] { fast(torch::ones(2)); });
  EXPECT_NE(sentence.find("'calls'"), sentence.npos) << sentence;
  EXPECT_EQ(module.attr("calls").toInt(), 0);
  EXPECT_TRUE(same_tensor(module.attr("last").toTensor(), torch::zeros(2)));
  auto as_it_is = compile(module);
  for (int call = 1; call <= 3; ++call) {
    as_it_is(torch::ones(2) * call);
    EXPECT_EQ(module.attr("calls").toInt(), call);
    EXPECT_TRUE(same_tensor(module.attr("last").toTensor(), torch::ones(2) * call));
  }
}

TEST(CompileScript, ChangedListsAreRefused) {
  auto fast =
      compile(script("def forward(self, xs: List[Tensor]):\n  xs.append(xs[0])\n  return xs[0] + 1\n"));
  c10::List<at::Tensor> list({torch::ones(2)});
  std::string sentence = message<UnsupportedError>([&] { fast(std::vector<IValue>{list}); });
  EXPECT_NE(sentence.find("changes a list"), sentence.npos) << sentence;
  EXPECT_EQ(list.size(), 1u);
}

TEST(CompileScript, AScriptWithoutForwardIsRefused) {
  EXPECT_NE(message<Error>([] { compile(torch::jit::Module("Empty")); }).find("no method forward"),
            std::string::npos);
}

TEST(CompileScript, ErrorsOfTheScriptsOwnPassThrough) {
  auto fast = compile(
      script("def forward(self, x):\n  assert x.dim() == 2, \"two dimensions, please\"\n  return x\n"));
  EXPECT_NE(message<std::exception>([&] { fast(torch::ones(2)); }).find("two dimensions, please"),
            std::string::npos);
  EXPECT_TRUE(same_tensor(fast(torch::ones({2, 2})).toTensor(), torch::ones({2, 2})));
}

}  // namespace
}  // namespace tandem
