// Operators of the user that have side effects and results: declared, they run once a call and in order.
#include "runtime/compare.h"

#include <tandem/ops.h>
#include <torch/library.h>

#include "support/notes.h"

namespace tandem {
namespace {

using test::contains;
using test::leaf;
using test::message;
using test::note;
using test::note_shape;
using test::notes;
using test::same_values;

// declared: has a Meta kernel and the fact; silent: has the Meta kernel alone; shapeless: has the fact alone.
TORCH_LIBRARY(tandem_effects, library) {
  for (const char* schema : {"declared(Tensor x, int tag) -> Tensor", "silent(Tensor x, int tag) -> Tensor",
                             "shapeless(Tensor x, int tag) -> Tensor", "late(Tensor x, int tag) -> Tensor"})
    library.def(schema);
}
TORCH_LIBRARY_IMPL(tandem_effects, CPU, library) {
  for (const char* name : {"declared", "silent", "shapeless", "late"}) library.impl(name, note);
}
TORCH_LIBRARY_IMPL(tandem_effects, Meta, library) {
  for (const char* name : {"declared", "silent", "late"}) library.impl(name, note_shape);
}

at::Tensor call(const std::string& name, const at::Tensor& x, int64_t tag) {
  auto op = c10::Dispatcher::singleton()
                .findSchemaOrThrow(("tandem_effects::" + name).c_str(), "")
                .typed<at::Tensor(const at::Tensor&, int64_t)>();
  at::AutoDispatchBelowAutograd below;
  return op.call(x, tag);
}

struct Effects : testing::Test {
  void SetUp() override {
    register_side_effect("tandem_effects::declared");
    register_side_effect("tandem_effects::shapeless");
    notes().clear();
  }

  static std::vector<std::string> noted(const Callable& fn, const Tensors& in) {
    notes().clear();
    fn(in);
    return std::move(notes());
  }

  static void expect_same_notes(const Callable& fn, const Tensors& in) {
    for (bool keep : {true, false}) {
      Compiled fast(fn, {.keep_input_mutations = keep});
      EXPECT_TRUE((noted(
                       [&](const Tensors& in) {
                         return Tensors{fast.explain(in).forward.outputs().empty() ? at::Tensor() : in[0]};
                       },
                       in)
                       .empty()))
          << "compiling had the effect";
      std::vector<std::string> want = noted(fn, in);
      EXPECT_FALSE(want.empty());
      for (int i = 0; i < 2; ++i) EXPECT_EQ(noted([&](const Tensors& in) { return fast(in); }, in), want);
      EXPECT_EQ(fast.explain(in).eager_reason, "");
    }
  }
};

TEST_F(Effects, OfAnOperatorWhoseResultNobodyReads) {
  expect_same_notes(
      [](const Tensors& in) {
        call("declared", in[0], 1);
        return Tensors{in[0] + 1};
      },
      {torch::ones(3)});
}

TEST_F(Effects, OfEqualCallsHappenAsOftenAsTheyAreMade) {
  expect_same_notes(
      [](const Tensors& in) { return Tensors{call("declared", in[0], 1) + call("declared", in[0], 1)}; },
      {torch::ones(3)});
}

TEST_F(Effects, OnConstantsAreNotFoldedAway) {
  expect_same_notes([](const Tensors& in) { return Tensors{in[0] + call("declared", torch::ones(3), 1)}; },
                    {torch::ones(3)});
}

TEST_F(Effects, KeepTheirOrderAmongEachOtherAndWithWrites) {
  expect_same_notes(
      [](const Tensors& in) {
        at::Tensor late = in[0] * 10;
        call("declared", in[0], 1);
        late.add_(1);
        call("declared", late, 2);
        late.mul_(2);
        call("declared", late, 3);
        call("declared", call("declared", in[0] + 1, 4), 5);
        return Tensors{late};
      },
      {torch::ones(3)});
}

TEST_F(Effects, SeeAnInputBeforeAndAfterItIsWritten) {
  const Callable fn = [](const Tensors& in) {
    call("declared", in[0], 1);
    in[0].add_(1);
    call("declared", in[0], 2);
    return Tensors{};
  };
  for (bool keep : {true, false}) {
    Compiled fast(fn, {.keep_input_mutations = keep});
    at::Tensor a = torch::zeros(2), b = torch::zeros(2);
    for (int i = 0; i < 2; ++i) {
      std::vector<std::string> want = noted(fn, {a});
      EXPECT_EQ(noted([&](const Tensors& in) { return fast(in); }, {b}), want);
    }
    EXPECT_TRUE(same_values(b, a));
  }
}

/// Its derivative is that of `x * 2`, noted on the way.
struct Noted : torch::autograd::Function<Noted> {
  static at::Tensor forward(torch::autograd::AutogradContext*, at::Tensor x) {
    return call("declared", x, 1);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {call("declared", gradients[0], 2)};
  }
};

TEST_F(Effects, OfForwardAndBackwardHappenOnceEach) {
  const Callable fn = [](const Tensors& in) {
    return Tensors{Noted::apply(Noted::apply(in[0]).sin()), in[0].exp()};
  };
  Compiled fast(fn, {});
  auto run = [](const Callable& f) {
    return noted(
        [&](const Tensors& in) {
          at::Tensor a = in[0].detach().requires_grad_();
          Tensors out = f({a});
          notes().push_back("backward");
          out[0].sum().backward({}, true);
          (out[0].sum() + out[1].sum()).backward();
          notes().push_back(std::to_string(a.grad().sum().item<float>()));
          return Tensors{};
        },
        {torch::ones(3)});
  };
  std::vector<std::string> want = run(fn);
  EXPECT_EQ(want.size(), 8u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run([&](const Tensors& in) { return fast(in); }), want);
  EXPECT_EQ(fast.explain({leaf({3})}).eager_reason, "");
}

TEST_F(Effects, OfAnOperatorWithoutTheFactHappenInTheForward) {
  expect_same_notes(
      [](const Tensors& in) {
        call("silent", in[0], 1);
        return Tensors{in[0] + 1};
      },
      {torch::ones(3)});
  expect_same_notes(
      [](const Tensors& in) { return Tensors{call("silent", in[0], 1) + call("silent", in[0], 1)}; },
      {torch::ones(3)});
  expect_same_notes([](const Tensors& in) { return Tensors{in[0] + call("silent", torch::ones(3), 1)}; },
                    {torch::ones(3)});
}

struct NotesInBackward : torch::autograd::Function<NotesInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * 1; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    call("late", gradients[0], 1);
    return {gradients[0]};
  }
};

TEST_F(Effects, AFactMayComeAfterTheOperatorWasUsed) {
  auto in_the_backward = [](const Callable& fn) {
    return noted(
        [&](const Tensors& in) {
          fn(in)[0].sum().backward();
          return Tensors{};
        },
        {leaf({3})});
  };
  const Callable fn = [](const Tensors& in) { return Tensors{NotesInBackward::apply(in[0])}; };
  EXPECT_TRUE(in_the_backward(Compiled(fn, {})).empty());
  register_side_effect("tandem_effects::late");
  EXPECT_EQ(in_the_backward(Compiled(fn, {})), in_the_backward(fn));
}

TEST_F(Effects, WithResultsOfUnknownShapeAreRefusedByNameAndNothingHappens) {
  Compiled fast([](const Tensors& in) { return Tensors{call("shapeless", in[0], 1)}; },
                {.must_compile = true});
  std::string refusal = message<UnsupportedError>([&] { fast({torch::ones(3)}); });
  EXPECT_TRUE(contains(refusal, "tandem_effects::shapeless") && contains(refusal, "Meta kernel")) << refusal;
  EXPECT_TRUE(notes().empty());
}

TEST_F(Effects, AreDeclaredOfOperatorsThatExist) {
  EXPECT_TRUE(
      contains(message<Error>([] { register_side_effect("tandem_effects::none"); }), "tandem_effects::none"));
}

}  // namespace
}  // namespace tandem
