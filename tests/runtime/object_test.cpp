// Compiled objects themselves: explained, nested, copied, reset.
#include "runtime/compare.h"

namespace tandem {
namespace {

using test::counter;
using test::leaf;
using test::same_values;

TEST(Explain, DoesNotRunAndSaysWhatCame) {
  at::Tensor state = torch::zeros(3);
  Compiled fast(
      [&](const Tensors& in) {
        state.add_(1);
        return Tensors{in[0].mul_(in[1]).exp().sin()};
      },
      {});
  at::Tensor a = torch::ones(3), b = leaf({3});
  Explanation e = fast.explain({a, b});
  test::verify(e);
  EXPECT_TRUE(same_values(a, torch::ones(3)) && same_values(state, torch::zeros(3)));
  EXPECT_EQ(a._version() + state._version(), 0u);
  EXPECT_EQ(e.eager_reason, "");
  ASSERT_EQ(e.contract.inputs.size(), 3u);
  EXPECT_EQ(e.contract.inputs[0].name, "argument 0");
  EXPECT_NE(e.contract.inputs[0].write, InputWrite::None);
  EXPECT_EQ(e.contract.inputs[1].write, InputWrite::None);
  EXPECT_EQ(e.contract.inputs[2].source, InputSource::Capture);
  EXPECT_NE(e.contract.inputs[2].write, InputWrite::None);
  EXPECT_GT(e.nodes_recorded, 4u);
  EXPECT_FALSE(e.key.empty());
  EXPECT_FALSE(e.backward.empty());
  EXPECT_GT(e.saved_bytes, 0);
  EXPECT_LE(e.saved_bytes, e.eager_saved_bytes);
  uint64_t traces = counter("trace");
  fast({a, b});
  EXPECT_EQ(counter("trace"), traces);
}

TEST(Explain, HasNoBackwardForInference) {
  Explanation e =
      Compiled([](const Tensors& in) { return Tensors{in[0].exp()}; }, {}).explain({leaf({3}, false)});
  EXPECT_TRUE(e.backward.empty());
  EXPECT_EQ(e.saved_bytes, 0);
}

TEST(Explain, ListsWhatIsKeptAndWhy) {
  Compiled fast(
      [](const Tensors& in) {
        const at::Tensor hidden = in[0].mm(in[1]).sin();
        return Tensors{std::get<0>(at::native_dropout(hidden, 0.5, true)).mm(in[1]).exp()};
      },
      {});
  const Explanation e = fast.explain({leaf({64, 64}), leaf({64, 64})});
  int64_t bytes = 0;
  auto why = [&](const std::string& op) {
    for (const SavedValue& value : e.saved)
      if (value.op == op) return value.why;
    return std::string("not kept");
  };
  for (const SavedValue& value : e.saved) bytes += value.bytes;
  EXPECT_EQ(bytes, e.saved_bytes);
  EXPECT_GE(e.predicted_peak_bytes, e.saved_bytes);
  EXPECT_EQ(why(""), "an input, or in the memory of one");
  EXPECT_EQ(why("aten::exp"), "an output, or in the memory of one");
  EXPECT_NE(why("aten::mm").find("us to compute again"), std::string::npos) << why("aten::mm");
  EXPECT_EQ(why("aten::native_dropout"), "random");
}

TEST(Explain, NamesParametersOfWatchedModules) {
  torch::nn::Sequential model(torch::nn::Linear(2, 2), torch::nn::BatchNorm1d(2));
  Explanation e =
      Compiled([&](const Tensors& in) { return Tensors{model->forward(in[0])}; }, {.watch = {model.ptr()}})
          .explain({leaf({3, 2})});
  std::vector<std::string> names;
  for (const Contract::Input& input : e.contract.inputs) names.push_back(input.name);
  for (const char* name : {"argument 0", "parameter 0.weight", "parameter 1.bias", "buffer 1.running_mean",
                           "buffer 1.num_batches_tracked"})
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
}

TEST(Nested, ACompiledFunctionInsideAnotherIsPartOfIt) {
  Compiled inner([](const Tensors& in) { return Tensors{in[0].sin() * 2}; }, {});
  Compiled outer([&](const Tensors& in) { return Tensors{inner({in[0].exp()})[0] + 1}; }, {});
  at::Tensor a = leaf({3});
  uint64_t forwards = counter("compile_forward");
  at::Tensor got = outer({a})[0], want = a.exp().sin() * 2 + 1;
  EXPECT_TRUE(same_values(got, want));
  EXPECT_TRUE(
      same_values(torch::autograd::grad({got.sum()}, {a})[0], torch::autograd::grad({want.sum()}, {a})[0]));
  EXPECT_EQ(counter("compile_forward"), forwards + 1);
  EXPECT_TRUE(same_values(inner({a})[0], a.sin() * 2));
}

TEST(Nested, OneCompiledFunctionFeedsAnother) {
  Compiled first([](const Tensors& in) { return Tensors{in[0].exp()}; }, {}),
      second([](const Tensors& in) { return Tensors{in[0].sin() * in[1]}; }, {});
  at::Tensor a = leaf({3});
  at::Tensor got = second({first({a})[0], a})[0], want = a.exp().sin() * a;
  EXPECT_TRUE(same_values(got, want));
  EXPECT_TRUE(
      same_values(torch::autograd::grad({got.sum()}, {a})[0], torch::autograd::grad({want.sum()}, {a})[0]));
}

TEST(Nested, AFunctionMayCallItselfCompiled) {
  std::optional<Compiled> fast;
  fast.emplace(
      [&](const Tensors& in) {
        return in[0].size(0) == 1 ? Tensors{in[0].sum()}
                                  : Tensors{(*fast)({in[0].slice(0, 1)})[0] + in[0][0]};
      },
      Options{});
  at::Tensor a = torch::arange(4.f);
  EXPECT_TRUE(same_values((*fast)({a})[0], torch::full({}, 6.f)));
}

TEST(Object, CopiesShareWhatWasCompiled) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].exp()}; }, {}), copy = fast;
  fast({torch::ones(2)});
  uint64_t traces = counter("trace");
  copy({torch::ones(2)});
  EXPECT_EQ(counter("trace"), traces);
}

TEST(Object, OutputsOutliveIt) {
  at::Tensor a = leaf({3}), y;
  {
    Compiled fast([](const Tensors& in) { return Tensors{in[0].exp().sin()}; }, {});
    y = fast({a})[0];
  }
  EXPECT_TRUE(same_values(torch::autograd::grad({y.sum()}, {a})[0],
                          torch::autograd::grad({a.exp().sin().sum()}, {a})[0]));
}

TEST(Reset, ForgetsWhatWasCompiledAndTheCounters) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].exp()}; }, {});
  at::Tensor a = leaf({3}), y = fast({a})[0];
  reset();
  for (const auto& [name, value] : counters()) EXPECT_EQ(value, 0u) << name;
  y.sum().backward();
  EXPECT_TRUE(same_values(a.grad(), a.detach().exp()));
  EXPECT_TRUE(same_values(fast({a})[0], a.exp()));
  EXPECT_EQ(counter("trace"), 1u);
}

TEST(Object, LettingGoOfItLetsGoOfItsCaptures) {
  c10::weak_intrusive_ptr<c10::TensorImpl> watched(c10::intrusive_ptr<c10::TensorImpl>{});
  {
    at::Tensor captured = leaf({2});
    watched = c10::weak_intrusive_ptr<c10::TensorImpl>(captured.getIntrusivePtr());
    Compiled fast([captured](const Tensors& in) { return Tensors{in[0] * captured}; }, {});
    fast({leaf({2})})[0].sum().backward();
  }
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace tandem
