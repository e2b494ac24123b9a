// Rows I: random numbers. They are libtorch's own, and the generator's state after a call is eager's, unless
// a row asks for counter-based ones.
#include "behaviours/row.h"

#include <ATen/CPUGeneratorImpl.h>

namespace tandem::behaviours {
namespace {

at::Tensor generator_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

Tensors dropped(const Tensors& in) { return {torch::dropout(in[0], 0.5, true) + in[0]}; }

void draws_anew_at_every_call(const char* random) {
  Compiled fast([](const Tensors& in) { return Tensors{torch::rand_like(in[0]), in[0] * 2}; },
                {.random = random, .debug_asserts = true});
  at::Tensor x = torch::randn(50);
  Tensors one = fast({x}), two = fast({x});
  EXPECT_FALSE(at::equal(one[0], two[0]));
  EXPECT_TRUE(((one[0] >= 0).logical_and(one[0] < 1)).all().item<bool>());
  EXPECT_TRUE(same_values(one[1], two[1]) && same_values(one[1], x * 2));
}

/// The generator's state behind a forward and behind its backward.
Tensors states(const Callable& fn) {
  torch::manual_seed(42);
  at::Tensor x = torch::ones(4).requires_grad_();
  at::Tensor y = fn({x})[0].sum();
  Tensors found = {generator_state()};
  y.backward();
  found.push_back(generator_state());
  return found;
}

void expect_generator_as_in_eager(const Callable& fn) {
  Compiled fast(fn, {});
  for (int call = 0; call < 2; ++call) {
    Tensors got = states([&](const Tensors& in) { return fast(in); }), want = states(fn);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
  }
}

/// A seed is drawn once a call, whatever the call draws; the backward draws none.
void expect_generator_to_move_by_a_seed() {
  auto seed = [](const Tensors& in) {
    auto* generator = at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
    generator->random64(), generator->random64();
    return Tensors{in[0] * 1};
  };
  Compiled fast(dropped, {.random = "counter"});
  for (int call = 0; call < 2; ++call) {
    Tensors got = states([&](const Tensors& in) { return fast(in); }), want = states(seed);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
  }
}

/// Draws in its backward as well.
struct NoisyGradient : torch::autograd::Function<NoisyGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext*, at::Tensor x) {
    return x * torch::rand_like(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * torch::rand_like(gradients[0])};
  }
};
Tensors noisy(const Tensors& in) { return {NoisyGradient::apply(in[0])}; }

void nothing_is_drawn_without_need() {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].sin()}; }, {.debug_asserts = true});
  at::Tensor before = generator_state();
  fast({leaf({3}, false).zero_()});
  torch::manual_seed(1);
  before = generator_state();
  at::Tensor x = torch::ones(3).requires_grad_();
  fast({x})[0].sum().backward();
  EXPECT_TRUE(at::equal(generator_state(), before));
}

void the_seed_decides() {
  Compiled fast(dropped, {});
  at::Tensor x = torch::ones(64).requires_grad_();
  auto run = [&](uint64_t seed) {
    torch::manual_seed(seed);
    at::Tensor y = fast({x})[0];
    return Tensors{y, torch::autograd::grad({y.sum()}, {x})[0]};
  };
  Tensors one = run(1), again = run(1), other = run(2);
  EXPECT_TRUE(same_values(one[0], again[0]) && same_values(one[1], again[1]));
  EXPECT_FALSE(at::equal(one[0], other[0]));
}

const auto one_vector = both([](bool rg) { return leaves({{16}}, {rg}); });

const bool random_versions = give_versions<NoisyGradient>();
const bool random_rows = add_rows({
    {"I1", {{dropped, one_vector}}},
    {.id = "I3",
     .check =
         [] {
           draws_anew_at_every_call("libtorch");
           draws_anew_at_every_call("counter");
         }},
    {.id = "I4",
     .check =
         [] {
           expect_generator_as_in_eager(dropped);
           expect_generator_to_move_by_a_seed();
         },
     .does_not_apply = "graphs draw seed and offset and yield none; the generator's state is held"},
    {.id = "I5",
     .cases = {{[](const Tensors& in) { return Tensors{torch::rand_like(in[0]) * in[0]}; },
                {leaves({{8}}, {true})}},
               {[](const Tensors& in) { return Tensors{torch::rand_like(in[0]) + in[0] * 2}; },
                {leaves({{8}}, {true})}},
               {noisy, {leaves({{8}}, {true})}}},
     .check = [] { expect_generator_as_in_eager(noisy); }},
    {.id = "I6", .check = nothing_is_drawn_without_need},
    {.id = "I8", .check = the_seed_decides},
    {.id = "I9", .waits_for = "CUDA graphs"},
});

}  // namespace
}  // namespace tandem::behaviours
