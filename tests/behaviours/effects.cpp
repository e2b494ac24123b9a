// Rows P: operators with side effects, determinism, passes.
#include "behaviours/row.h"

#include <ATen/Context.h>
#include <torch/library.h>

namespace tandem::behaviours {
namespace {

/// What the operators below noted, in order.
std::vector<std::string>& notes() {
  static std::vector<std::string> all;
  return all;
}
void note(const at::Tensor& x, int64_t tag) {
  notes().push_back(std::to_string(tag) + ": " + std::to_string(x.detach().sum().item<double>()));
}

TORCH_LIBRARY(tandem_behaviours, library) { library.def("note(Tensor x, int tag) -> ()"); }
TORCH_LIBRARY_IMPL(tandem_behaviours, CPU, library) { library.impl("note", note); }

void call_note(const at::Tensor& x, int64_t tag) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("tandem_behaviours::note", "")
                             .typed<void(const at::Tensor&, int64_t)>();
  at::AutoDispatchBelowAutograd below;
  op.call(x, tag);
}

struct NotesInBackward : torch::autograd::Function<NotesInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, at::Tensor x) {
    call_note(x, 1);
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    call_note(gradients[0], 2);
    return {gradients[0] * 2};
  }
};

std::vector<std::string> noted_by(const Callable& fn, bool backward) {
  notes().clear();
  for (float value : {1.f, 2.f}) {
    at::Tensor x = torch::full({3}, value).requires_grad_(backward);
    Tensors out = fn({x});
    if (backward) out[0].sum().backward();
    if (backward) notes().push_back("gradient " + std::to_string(x.grad().sum().item<double>()));
  }
  return notes();
}

void expect_same_notes(const Callable& fn, bool backward) {
  for (bool keep : {true, false}) {
    std::vector<std::string> want = noted_by(fn, backward);
    Compiled fast(fn, {.keep_input_mutations = keep});
    EXPECT_EQ(noted_by([&](const Tensors& in) { return fast(in); }, backward), want);
    std::string reason = fast.explain({torch::ones(3).requires_grad_(backward)}).eager_reason;
    if (!reason.empty()) remark("uncompiled: " + reason);
  }
}

void effects_of_the_forward() {
  expect_same_notes(
      [](const Tensors& in) {
        call_note(in[0], 1);
        at::Tensor y = in[0] + 1;
        call_note(y, 2);
        return Tensors{y.mul_(2)};
      },
      false);
  expect_same_notes(
      [](const Tensors& in) {
        call_note(in[0], 1);
        return Tensors{};
      },
      false);
}

void effects_of_forward_and_backward() {
  expect_same_notes([](const Tensors& in) { return Tensors{NotesInBackward::apply(in[0]) * 3}; }, true);
  expect_same_notes(
      [](const Tensors& in) { return Tensors{NotesInBackward::apply(NotesInBackward::apply(in[0]).sin())}; },
      true);
}

void without_effects_there_is_nothing_more() {
  Explanation e =
      Compiled([](const Tensors& in) { return Tensors{in[0] + 1}; }, {}).explain({torch::ones(3)});
  EXPECT_EQ(e.forward.inputs().size(), 1u);
  EXPECT_EQ(e.forward.outputs().size(), 1u);
  EXPECT_EQ(e.forward.nodes().size(), 1u);
}

/// Deterministic while it lives, or not.
class Deterministic {
 public:
  explicit Deterministic(bool on) : before_(at::globalContext().deterministicAlgorithms()) {
    at::globalContext().setDeterministicAlgorithms(on, false);
  }
  ~Deterministic() { at::globalContext().setDeterministicAlgorithms(before_, false); }
  Deterministic(const Deterministic&) = delete;

 private:
  bool before_;
};

void determinism_is_asked_when_the_backward_runs() {
  Callable fn = [](const Tensors& in) {
    return Tensors{at::put(in[0], torch::tensor({0, 1}), in[1], false) * 2};
  };
  for (bool at_forward : {false, true})
    for (bool at_backward : {false, true}) {
      Compiled fast(fn, {});
      auto run = [&](const Callable& f) {
        at::Tensor a = torch::ones(3).requires_grad_(), b = torch::ones(2).requires_grad_(), y;
        std::string failure = test::message([&] {
          {
            Deterministic mode(at_forward);
            y = f({a, b})[0];
          }
          Deterministic mode(at_backward);
          y.sum().backward();
        });
        return std::tuple(failure.empty(), a.grad().defined() ? a.grad().sum().item<float>() : -1.f);
      };
      EXPECT_EQ(run([&](const Tensors& in) { return fast(in); }), run(fn)) << at_forward << at_backward;
    }
}

const bool effects_versions = give_versions<NotesInBackward>();
const bool library_version = (register_library("tandem_behaviours", "1"), true);
const bool effects_rows = add_rows({
    {.id = "P1",
     .check = effects_of_the_forward,
     .does_not_apply = "order is that of the graph, without tokens; the effects are held"},
    {.id = "P2", .check = without_effects_there_is_nothing_more},
    {.id = "P4", .check = effects_of_forward_and_backward},
    {.id = "P6", .check = determinism_is_asked_when_the_backward_runs},
    {.id = "P7", .waits_for = "graph hooks"},
    {.id = "P8",
     .does_not_apply =
         "a pass takes a graph by value and returns one, so the caller's stays as it is by construction"},
    {.id = "P9", .does_not_apply = "libtorch has no compiler of whole backwards in C++"},
});

}  // namespace
}  // namespace tandem::behaviours
