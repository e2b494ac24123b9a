#include "frontend/compare.h"
#include "frontend/pairs.h"
#include "frontend/refused_program.h"

namespace tandem {
namespace {

using test::counter;
using test::Jagged;
using test::Nested;
using test::Pair;
using test::same_tensor;
using test::Scaled;
using test::Twice;

at::Tensor leaf(at::IntArrayRef sizes) { return torch::randn(sizes, at::kDouble).requires_grad_(); }
Pair pair() { return {leaf({2, 3}), leaf({2, 3})}; }
Nested nested() { return {pair(), {leaf({3}), 2.5}, "mean"}; }
template <class W>
W copy(const W& wrapper) {
  return map_tensors(
      wrapper, [](const at::Tensor& t) { return t.detach().clone().requires_grad_(t.requires_grad()); });
}
template <class W>
W ones_like(const W& wrapper) {
  return map_tensors(wrapper, [](const at::Tensor& t) { return at::ones_like(t); });
}

/// Called and differentiated twice, the compiled function and the original agree on results, their constants,
/// and gradients.
template <class F, class... Args>
void expect_same_training(const F& original, const Args&... args) {
  auto fast = compile(original);
  for (int round = 0; round < 2; ++round) {
    std::tuple<Args...> ours{copy(args)...}, theirs{copy(args)...};
    auto got = std::apply(fast, ours);
    auto want = std::apply(original, theirs);
    Writer got_parts, want_parts;
    got_parts.write(got);
    want_parts.write(want);
    test::expect_same(got_parts.tensors, want_parts.tensors);
    EXPECT_EQ(got_parts.rest, want_parts.rest);
    backward(got, ones_like(got));
    backward(want, ones_like(want));
    test::expect_same(tensors_of(grad_of(ours)), tensors_of(grad_of(theirs)));
  }
}

TEST(Wrapper, AStructIsTakenApartByItsFields) {
  Nested value = nested();
  std::vector<std::string> names;
  Writer writer;
  writer.names = &names;
  writer.path = "batch";
  writer.write(std::vector<Nested>{value});
  EXPECT_EQ(names,
            (std::vector<std::string>{"batch[0].inner.a", "batch[0].inner.b", "batch[0].scaled.value"}));
  auto back = Reader(writer.tensors, writer.rest).read<std::vector<Nested>>();
  EXPECT_TRUE(back[0].inner.b.is_same(value.inner.b));
  EXPECT_TRUE(back[0].scaled.value.is_same(value.scaled.value));
  EXPECT_EQ(back[0].scaled.scale, 2.5);
  EXPECT_EQ(back[0].kind, "mean");
}

TEST(Wrapper, FieldsOfEveryKindComeBack) {
  enum class Colour { Red, Blue };
  struct Everything {
    std::optional<Pair> missing, present;
    std::vector<Pair> list;
    std::map<std::string, at::Tensor> dict;
    std::array<at::Tensor, 2> two;
    std::tuple<at::Tensor, Scaled> tuple;
    std::pair<int, at::Tensor> numbered;
    std::variant<at::Tensor, Pair> either;
    Colour colour;
    bool flag;
    c10::Device device;
    c10::Scalar scalar;
    const int64_t count;
    std::vector<double> numbers;
  };
  at::Tensor t = leaf({1});
  Everything value{{},     Pair{t, t}, {{t, t}, {t, t}}, {{"x", t}}, {t, t},    {t, {t, 3}},
                   {4, t}, Pair{t, t}, Colour::Blue,     true,       at::kMeta, 1.5,
                   7,      {1, 2}};
  Everything back = map_tensors(value, [](const at::Tensor& x) { return x * 2; });
  EXPECT_EQ(tensors_of(value).size(), 14u);
  for (const at::Tensor& x : tensors_of(back)) EXPECT_TRUE(same_tensor(x, t * 2));
  EXPECT_FALSE(back.missing);
  EXPECT_TRUE(back.present);
  EXPECT_EQ(std::get<1>(back.tuple).scale, 3);
  EXPECT_EQ(back.numbered.first, 4);
  EXPECT_EQ(back.either.index(), 1u);
  EXPECT_EQ(back.colour, Colour::Blue);
  EXPECT_TRUE(back.flag);
  EXPECT_EQ(back.device, c10::Device(at::kMeta));
  EXPECT_EQ(back.scalar.toDouble(), 1.5);
  EXPECT_EQ(back.count, 7);
  EXPECT_EQ(back.numbers, (std::vector<double>{1, 2}));
}

TEST(Wrapper, ParametersAndResultsAreTrainedLikeTheOriginals) {
  expect_same_training([](const Pair& x, Pair y) { return (x * y).a + (x + y).b; }, pair(), pair());
  expect_same_training([](const Pair& x, const at::Tensor& t) { return x * 6.0 + t / 2; }, pair(),
                       leaf({2, 3}));
  expect_same_training([](const Nested& x, const Nested& y) { return x * y; }, nested(), nested());
  expect_same_training(
      [](const std::vector<Nested>& many) {
        return std::make_pair(many[0] * many[1], std::optional<Scaled>({many[2].scaled.value.exp(), 4}));
      },
      std::vector<Nested>{nested(), nested(), nested()});
}

TEST(Wrapper, AClassMaySayItselfHowItIsTakenApart) {
  at::Tensor x = leaf({3}), y = leaf({3});
  auto original = [](const Twice& x, const at::Tensor& t) { return Twice(x.value().tanh() * t); };
  auto fast = compile(original);
  Twice got = fast(Twice(x), y), want = original(Twice(x), y);
  EXPECT_TRUE(same_tensor(got.value(), want.value()));
  test::expect_same(test::gradients(got.value(), {x, y}), test::gradients(want.value(), {x, y}));
}

TEST(Wrapper, AnotherConstantOrKindIsAnotherTraceWithItsOwnResult) {
  using Either = std::variant<at::Tensor, Scaled, Pair>;
  struct Evaluate {
    at::Tensor operator()(const at::Tensor& t) const { return t * 2; }
    at::Tensor operator()(const Scaled& s) const { return s.value * s.scale; }
    at::Tensor operator()(const Pair& p) const { return p.a - p.b; }
  };
  auto original = [](const Either& either) {
    return std::make_pair(std::visit(Evaluate(), either), either.index());
  };
  auto fast = compile(original);
  at::Tensor a = leaf({2}), b = leaf({2});
  const std::vector<Either> calls{a, Scaled{a, 3}, Scaled{a, 4}, Pair{a, b}};
  uint64_t before = counter("trace");
  for (int round = 0; round < 2; ++round) {
    for (const Either& call : calls) {
      EXPECT_TRUE(same_tensor(fast(call).first, original(call).first));
      EXPECT_EQ(fast(call).second, call.index());
    }
    EXPECT_EQ(counter("trace") - before, calls.size()) << "round " << round;
  }
}

TEST(Wrapper, MissingFieldsAreMissingInTheFunctionAndInTheResult) {
  auto original = [](const Jagged& x) {
    at::Tensor values = x.lengths ? x.values * x.lengths->sum() : x.values.tanh();
    return Jagged{values, std::nullopt, x.lengths};
  };
  Jagged without{leaf({5}), torch::tensor({0, 2, 5}), std::nullopt},
      with{leaf({5}), std::nullopt, torch::tensor({2, 3})};
  auto fast = compile(original);
  for (const Jagged& call : {without, with, without}) {
    Jagged got = fast(call), want = original(call);
    EXPECT_TRUE(same_tensor(got.values, want.values));
    EXPECT_FALSE(got.offsets);
    EXPECT_EQ(got.lengths.has_value(), call.lengths.has_value());
    EXPECT_TRUE(!call.lengths || got.lengths->is_same(*call.lengths));
  }
  Pair half = compile([](const Pair& x) { return Pair{x.b.defined() ? x.a * x.b : x.a + 1, {}}; })(
      Pair{without.values, {}});
  EXPECT_TRUE(same_tensor(half.a, without.values + 1));
  EXPECT_FALSE(half.b.defined());
}

TEST(Wrapper, TheContractNamesInnerTensorsByTheirPath) {
  auto fast = compile([](const at::Tensor& t, const Nested& x) { return x.inner * t * x.scaled.value; });
  Explanation explanation = fast.explain(leaf({2, 3}), nested());
  std::vector<std::string> names;
  for (const Contract::Input& role : explanation.contract.inputs) names.push_back(role.name);
  EXPECT_EQ(names, (std::vector<std::string>{"argument 0", "argument 1.inner.a", "argument 1.inner.b",
                                             "argument 1.scaled.value"}));
  EXPECT_EQ(explanation.contract.outputs.size(), 2u);
}

TEST(Wrapper, AGradientOfAnotherKindIsRefusedAndTheKindsAreNamed) {
  using Either = std::variant<at::Tensor, Pair, Nested>;
  at::Tensor x = leaf({2});
  Either value = Pair{x * 2, x * 3};
  std::string plain = test::message<ContractError>([&] { backward(value, Either(torch::ones(2))); });
  EXPECT_NE(
      plain.find("consists of tandem::test::Pair.a, tandem::test::Pair.b, and it consists of at::Tensor"),
      plain.npos)
      << plain;
  std::string list = test::message<ContractError>([&] { backward(std::vector<Pair>{{x * 2, x}}, {}); });
  EXPECT_NE(list.find("consists of [0].a, [0].b, and it consists of no tensor"), list.npos) << list;
  std::string constant =
      test::message<ContractError>([&] { backward(Scaled{x * 2, 3}, {torch::ones(2), 4}); });
  EXPECT_NE(constant.find("other constants"), constant.npos) << constant;
  EXPECT_FALSE(x.grad().defined());
  EXPECT_NE(test::message<ContractError>([&] {
              backward(Pair{x * 2, x * 3}, {});
            }).find("nothing to differentiate"),
            std::string::npos);
  backward(value, Either(Pair{torch::ones(2), {}}), {.retain_graph = true});
  EXPECT_TRUE(at::equal(x.grad(), torch::full({2}, 2, at::kDouble)));
  backward(value, Either(Pair{torch::ones(2), torch::ones(2)}));
  EXPECT_TRUE(at::equal(x.grad(), torch::full({2}, 7, at::kDouble)));
}

TEST(Wrapper, GradientsOfGradientsAreWrappersToo) {
  auto fast = compile([](const Nested& x) { return x * x * x; });
  Nested x = nested(), y = fast(x);
  Nested first = grad(y, x, ones_like(y), {.create_graph = true}), second = grad(first, x, ones_like(first));
  EXPECT_EQ(second.kind, "mean");
  EXPECT_TRUE(at::allclose(second.inner.a, x.inner.a * 6, 1e-10, 0));
  EXPECT_TRUE(at::allclose(second.scaled.value, x.scaled.value * 6 * 2.5 * 2.5, 1e-10, 0));
  EXPECT_FALSE(x.inner.a.grad().defined());
}

TEST(Wrapper, AGradientIsUndefinedWhereThereIsNone) {
  Pair x = pair(), other{leaf({2}), torch::ones(2)},
       y = compile([](const Pair& x) { return Pair{x.a * 2, x.a * 3}; })(x);
  Pair of_x = grad(y, x, {at::ones_like(y.a), {}}, {.retain_graph = true});
  EXPECT_TRUE(at::equal(of_x.a, at::full_like(y.a, 2)));
  EXPECT_FALSE(of_x.b.defined());
  Pair of_other = grad(y, other, ones_like(y));
  EXPECT_FALSE(of_other.a.defined() || of_other.b.defined());
}

TEST(Wrapper, AWrapperTakenByValueMayBeChangedAndReturned) {
  auto fast = compile([](Pair x) {
    x.a = x.a * 2;
    return x;
  });
  Pair x = pair();
  Pair y = fast(x);
  EXPECT_TRUE(same_tensor(y.a, x.a * 2));
  EXPECT_TRUE(y.b.is_same(x.b));
}

template <class W, class G>
concept CanGoBackward = requires(W wrapper, G gradient) { backward(wrapper, gradient); };
static_assert(CanGoBackward<Pair, Pair>);
static_assert(!CanGoBackward<Pair, at::Tensor>, "a plain gradient of a wrapper");
static_assert(!CanGoBackward<at::Tensor, Pair>, "a wrapper gradient of a plain tensor");
static_assert(!CanGoBackward<Pair, Nested>, "a nested gradient of a single wrapper");

TEST(Wrapper, WhatCannotBeTakenApartDoesNotCompileAndSaysWhy) {
  const std::string errors = test::refusal_of(R"(
    class Hidden { at::Tensor x; public: Hidden(); };
    struct WithHidden { at::Tensor a; Hidden hidden; };
    struct Base { at::Tensor a; };
    struct Derived : Base { at::Tensor b; };
    struct Long { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q; at::Tensor t; };
    struct Borrowing { at::Tensor a; std::vector<std::string_view> names; };
    struct Good { at::Tensor a; int n; };
    template <class W> void take_apart(const W& wrapper) { tandem::tensors_of(wrapper); }
    template void take_apart(const WithHidden&);
    template void take_apart(const Derived&);
    template void take_apart(const Long&);
    template void take_apart(const Borrowing&);
    template void take_apart(const Good&);
  )");
  for (const char* sentence :
       {"cannot be taken apart; use tensors", "a struct with base classes cannot be taken apart by itself",
        "a struct of more than 16 fields", "fields of a struct own what they hold"})
    EXPECT_NE(errors.find(sentence), errors.npos) << sentence << "\nis not in\n" << errors;
  EXPECT_NE(errors.find("with W = Derived"), errors.npos) << errors;
  EXPECT_EQ(errors.find("with W = Good"), errors.npos) << errors;
}

TEST(Compile, WhatHasNoSignatureDoesNotCompileAndSaysWhatToWrite) {
  const std::string errors = test::refusal_of(R"(
    #include <tandem/compile.h>
    struct Net { at::Tensor forward(const at::Tensor& x) { return x; } };
    void given(torch::nn::AnyModule& any) {
      tandem::compile(&Net::forward);
      tandem::compile(any);
      tandem::compile([](auto x) { return x.sin(); });
      tandem::compile([](const auto& x, auto&& y) { return x.mul(y); });
      tandem::compile([](const auto& list) -> tandem::Tensors { return {list[0]}; })({at::Tensor()});
      tandem::compile([](const at::Tensor& x) { return x.sin(); });
    }
  )");
  for (const char* sentence :
       {"a member function has no object; compile the module itself",
        "an AnyModule hides what its forward takes", "auto parameters have no types to compile for"})
    EXPECT_NE(errors.find(sentence), errors.npos) << sentence << "\nis not in\n" << errors;
  size_t generic = 0;
  for (size_t at = errors.find("error: static assertion failed: tandem::compile: auto"); at != errors.npos;
       at = errors.find("error: static assertion failed: tandem::compile: auto", at + 1))
    ++generic;
  EXPECT_EQ(generic, 2u) << errors;
  EXPECT_EQ(errors.find("has no member named"), errors.npos) << errors;
}

}  // namespace
}  // namespace tandem
