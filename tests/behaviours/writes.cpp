// Rows B: functions that write their inputs.
#include "behaviours/row.h"

namespace tandem::behaviours {
namespace {

void an_outer_view_sees_the_write() {
  for (bool keep : {true, false}) {
    Callable fn = [](const Tensors& in) {
      in[0].mul_(2);
      return Tensors{(in[0] + 1).detach()};
    };
    Compiled fast(fn, {.keep_input_mutations = keep, .debug_asserts = true});
    struct World {
      at::Tensor leaf, x, v;
    };
    auto run = [](const Callable& f) {
      torch::manual_seed(1);
      World w;
      w.leaf = test::leaf({4});
      w.x = w.leaf + 0;
      w.v = w.x.view({2, 2});
      f({w.x});
      return w;
    };
    World want = run(fn), got = run([&](const Tensors& in) { return fast(in); });
    EXPECT_TRUE(same_tensor(got.v, want.v));
    EXPECT_EQ(got.v._version(), want.v._version());
    EXPECT_EQ(got.v.grad_fn()->name(), want.v.grad_fn()->name());
    (got.x * got.v.view({4})).sum().backward();
    (want.x * want.v.view({4})).sum().backward();
    EXPECT_TRUE(same_values(got.leaf.grad(), want.leaf.grad()));
  }
}

Tensors write_inside_no_grad(const Tensors& in) {
  {
    torch::NoGradGuard no_grad;
    in[0].mul_(2);
  }
  return {in[0] + 3};
}

Tensors all_under_no_grad(const Tensors& in) {
  torch::NoGradGuard no_grad;
  in[0].mul_(2);
  return {in[0] + 3};
}

void writes_under_no_grad_are_kept() {
  Explanation training = Compiled(write_inside_no_grad, {}).explain(non_leaves({{3}}, {true})().arguments);
  EXPECT_EQ(training.contract.inputs[0].write, InputWrite::InGraph);
  EXPECT_FALSE(training.backward.empty());
  Explanation inference = Compiled(all_under_no_grad, {}).explain(non_leaves({{3}}, {true})().arguments);
  EXPECT_EQ(inference.contract.inputs[0].write, InputWrite::InGraph);
  EXPECT_TRUE(inference.backward.empty());
}

Tensors add_in_place(const Tensors& in) { return {in[0].add_(in[1])}; }

Maker first_may_come_to_require_grad() {
  return [] {
    Scene scene = leaves({{3}, {3}}, {false, true})();
    scene.leaves.push_back(scene.arguments[0]);
    return scene;
  };
}

std::vector<Maker> with_running_statistics() {
  return both([](bool rg) -> Maker {
    return [rg] {
      Scene scene = leaves({{4, 3}, {3}, {3}}, {rg, rg, rg})();
      scene.arguments.push_back(torch::zeros(3));
      scene.arguments.push_back(torch::ones(3));
      return scene;
    };
  });
}

/// The gradient of a plain sum, or of squares, would be nothing but rounding.
Tensors batch_norm(const Tensors& in, bool training) {
  return {torch::batch_norm(in[0], in[1], in[2], in[3], in[4], training, 0.1, 1e-5, false).sin()};
}

void decomposed_batch_norm() {
  for (bool keep : {true, false}) {
    Callable fn = [](const Tensors& in) { return batch_norm(in, true); };
    Compiled fast(
        fn,
        {.keep_input_mutations = keep, .debug_asserts = true, .decompositions = default_decompositions()});
    torch::manual_seed(1);
    Scene got = with_running_statistics()[1](), want;
    for (const at::Tensor& t : got.arguments)
      want.arguments.push_back(t.detach().clone().requires_grad_(t.requires_grad()));
    fast(got.arguments)[0].square().sum().backward();
    fn(want.arguments)[0].square().sum().backward();
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(at::allclose(got.arguments[i], want.arguments[i])) << i;
      if (i >= 3) continue;
      EXPECT_TRUE(at::allclose(got.arguments[i].grad(), want.arguments[i].grad(), 1e-4, 1e-5)) << i;
    }
  }
}

std::vector<Maker> a_and_a_range(bool leaf_inputs) {
  return both([=](bool rg) -> Maker {
    return [=] {
      Scene scene = (leaf_inputs ? leaves({{3, 3}}, {rg}) : non_leaves({{3, 3}}, {rg}))();
      at::Tensor range = torch::arange(9.f).view({3, 3}).requires_grad_(rg);
      if (rg) scene.leaves.push_back(range);
      scene.arguments.push_back(leaf_inputs ? range : range + 1);
      return scene;
    };
  });
}

/// Nothing in it, but an address: what `resize_` and kernels that size their results may enlarge.
at::Tensor empty_state() { return torch::empty({0}); }

Maker an_empty_and_a_full_one() {
  return [] { return Scene{.arguments = {empty_state(), torch::randn(8)}}; };
}

const bool writes_rows = add_rows({
    {"B1",
     {{[](const Tensors& in) {
         in[0].mul_(2);
         return Tensors{in[0] * 3};
       },
       squares(1)}}},
    {"B2",
     {{[](const Tensors& in) {
         in[0].mul_(2);
         return Tensors{in[0]};
       },
       squares(1)}}},
    {"B3",
     {{[](const Tensors& in) {
         in[0].mul_(2);
         in[2].mul_(2);
         return Tensors{in[0] + in[1] + in[2]};
       },
       squares(3)}}},
    {"B4",
     {{[](const Tensors& in) {
         at::Tensor out = in[1];
         at::sin_out(out, in[0]);
         return Tensors{out};
       },
       {non_leaves({{3}, {3}}, {false, false})}}}},
    {"B6",
     {{[](const Tensors& in) {
         in[0].add_(1);
         return Tensors{};
       },
       both_cut_from({4, 4}, [](at::Tensor x) { return Tensors{x.slice(0, 0, 4, 2)}; })},
      {[](const Tensors& in) {
         in[0].mul_(2);
         return Tensors{in[0] + 1};
       },
       both_cut_from({4, 4}, [](at::Tensor x) { return Tensors{x.select(1, 0)}; })}}},
    {.id = "B7", .check = an_outer_view_sees_the_write},
    {"B8",
     {{[](const Tensors& in) {
         in[0].transpose_(1, 0);
         return Tensors{in[0] + in[1]};
       },
       both([](bool rg) { return non_leaves({{2, 3}, {3, 2}}, {rg, rg}); })},
      {[](const Tensors& in) {
         in[0].transpose_(1, 0);
         in[0].mul_(2);
         return Tensors{in[0] + 1};
       },
       both([](bool rg) { return non_leaves({{2, 3}}, {rg}); })},
      {[](const Tensors& in) {
         in[0].unsqueeze_(0);
         in[0].squeeze_(0);
         in[1].t_();
         return Tensors{in[0] * in[1]};
       },
       both([](bool rg) { return non_leaves({{2, 3}, {3, 2}}, {rg, rg}); }), uncompiled()}}},
    {"B10",
     {{[](const Tensors& in) {
         in[0].detach().mul_(2);
         return Tensors{in[0] + 3};
       },
       {leaves({{3}}, {true}), non_leaves({{3}}, {true}), leaves({{3}}, {false})}}}},
    {.id = "B11",
     .cases = {{write_inside_no_grad, {non_leaves({{3}}, {true}), leaves({{3}}, {true})}},
               {all_under_no_grad, {non_leaves({{3}}, {true})}}},
     .check = writes_under_no_grad_are_kept},
    {.id = "B14",
     .cases = {{add_in_place, {leaves({{3}, {3}}, {false, true})}}},
     .check =
         [] {
           EXPECT_EQ(Compiled(add_in_place, {})
                         .explain(leaves({{3}, {3}}, {false, true})().arguments)
                         .contract.inputs[0]
                         .write,
                     InputWrite::Returned);
         }},
    {"B15",
     {{[](const Tensors& in) {
         in[0].requires_grad_(true);
         return Tensors{in[0] * 3, in[1] * 4};
       },
       {first_may_come_to_require_grad()}}}},
    {.id = "B16",
     .cases = {{[](const Tensors& in) {
                  at::Tensor tmp = in[0].detach();
                  in[0].mul_(2);
                  return Tensors{in[0], tmp};
                },
                squares(1)}}},
    {.id = "B17",
     .cases = {{[](const Tensors& in) { return batch_norm(in, true); }, with_running_statistics()},
               {[](const Tensors& in) {
                  Tensors out = batch_norm(in, true);
                  out.push_back(in[3] * in[1]);
                  return out;
                },
                with_running_statistics()},
               {[](const Tensors& in) { return batch_norm(in, false); }, with_running_statistics()}},
     .check = decomposed_batch_norm},
    {"B19",
     {{[](const Tensors& in) {
         {
           torch::NoGradGuard no_grad;
           in[0].set_(in[1]);
         }
         return Tensors{in[0] * in[1]};
       },
       a_and_a_range(true), uncompiled()}}},
    {"B20",
     {{[](const Tensors& in) {
         {
           torch::NoGradGuard no_grad;
           in[0].set_(in[1]);
         }
         in[1].mul_(2);
         return Tensors{in[0] + in[1]};
       },
       a_and_a_range(false), uncompiled()}}},
    {"B23",
     {{[](const Tensors& in) {
         in[0].resize_({8});
         torch::NoGradGuard no_grad;
         in[0].copy_(in[1]);
         return Tensors{in[0] + 1};
       },
       {an_empty_and_a_full_one()},
       uncompiled()},
      {[](const Tensors& in) {
         at::Tensor out = in[1].sin();
         in[1].resize_({0});
         return Tensors{out};
       },
       {an_empty_and_a_full_one()},
       uncompiled()},
      {[](const Tensors& in) {
         in[1].resize_({0});
         torch::NoGradGuard no_grad;
         in[1].set_(torch::ones(3));
         return Tensors{in[1] * 2};
       },
       {an_empty_and_a_full_one()},
       uncompiled()}},
     {},
     "",
     "no operator of libtorch resizes a storage alone; resize_ is held"},
    {"B24",
     {{[](const Tensors& in) {
         at::Tensor lowest = in[1], highest = in[2], values = in[3], order = in[4];
         at::aminmax_out(lowest, highest, in[0], 0);
         at::sort_out(values, order, in[0]);
         return Tensors{lowest + highest, values * 2};
       },
       {[] {
         return Scene{.arguments = {torch::randn({3, 4}), empty_state(), empty_state(), empty_state(),
                                    torch::empty({0}, at::kLong)}};
       }},
       uncompiled()}}},
    {"B29",
     {{[](const Tensors& in) {
         at::Tensor middle = in[0] * 3, saved = in[1].sin();
         at::_foreach_add_({in[0], middle, saved}, 1);
         return Tensors{middle * in[0], saved.exp()};
       },
       squares(2)},
      {[](const Tensors& in) {
         at::Tensor middle = in[0].sin();
         at::_foreach_mul_({in[1], middle}, {in[0], in[0]});
         return Tensors{middle.exp()};
       },
       both([](bool rg) { return non_leaves({{3}, {3}}, {rg, false}); })}},
     {},
     "",
     "functionalisation is always on; the writes are held"},
});

}  // namespace
}  // namespace tandem::behaviours
