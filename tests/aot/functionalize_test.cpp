// Writes through every kind of view, turned into values.
#include "runtime/compare.h"

#include "ops/facts.h"

namespace tandem {
namespace {

using test::compare;
using test::compare_both;
using test::leaf;
using test::leaves;
using test::Maker;
using test::non_leaves;

const std::function<Maker(bool)> grid = [](bool rg) { return non_leaves({{3, 4}}, {rg}); };

/// Reads the argument after a write through `view` and works on a private intermediate too.
void compare_write(const std::function<at::Tensor(at::Tensor)>& view) {
  compare_both(
      [=](const Tensors& in) {
        view(in[0]).mul_(2);
        return Tensors{in[0].sin()};
      },
      grid);
  compare_both(
      [=](const Tensors& in) {
        at::Tensor own = in[0] * 3;
        view(own).add_(1);
        return Tensors{own.sin(), view(own) * 2};
      },
      grid);
}

TEST(Functionalize, EveryKindOfView) {
  compare_write([](at::Tensor x) { return x[1]; });
  compare_write([](at::Tensor x) { return x.slice(1, 0, 4, 2); });
  compare_write([](at::Tensor x) { return x.t(); });
  compare_write([](at::Tensor x) { return x.view({-1}).slice(0, 2, 9); });
  compare_write([](at::Tensor x) { return x.diagonal(); });
  compare_write([](at::Tensor x) { return x.unsqueeze(0).transpose(0, 2).narrow(1, 1, 2); });
  compare_write([](at::Tensor x) { return x.unfold(1, 2, 2); });
  compare_write([](at::Tensor x) { return x.narrow(1, 2, 2).flatten(); });
  compare_write([](at::Tensor x) { return x.unflatten(1, {2, 2}).select(2, 1); });
  compare_write([](at::Tensor x) { return x.permute({1, 0}).squeeze(); });
}

TEST(Functionalize, AsStrided) {
  auto window = [](at::Tensor x) { return x.as_strided({2, 2}, {4, 1}, x.storage_offset() + 1); };
  compare_both(
      [=](const Tensors& in) {
        at::Tensor own = in[0] * 3;
        window(own).add_(1);
        return Tensors{own.sin()};
      },
      grid);
  compare_both(
      [=](const Tensors& in) {
        window(in[0]).add_(1);
        return Tensors{in[0].sin()};
      },
      grid);
}

TEST(Functionalize, AsStridedOfAnInputThatBeginsElsewhere) {
  Callable fn = [](const Tensors& in) { return Tensors{in[0].as_strided({2}, {1}) * 2}; };
  Compiled fast(fn, {});
  at::Tensor memory = torch::arange(10.f);
  for (int64_t offset : {0, 3, 5, 0}) {
    at::Tensor a = memory.slice(0, offset, offset + 4);
    EXPECT_TRUE(test::same_values(fast({a})[0], fn({a})[0])) << offset;
  }
}

TEST(Functionalize, WritesToViewsOfAnInputThatBeginsElsewhere) {
  for (bool keep : {true, false}) {
    Callable fn = [](const Tensors& in) {
      in[0].slice(0, 1, 3).mul_(2);
      in[0].view({2, 2}).t()[1].add_(1);
      return Tensors{in[0] + 1};
    };
    Compiled fast(fn, {.keep_input_mutations = keep});
    for (int64_t offset : {0, 3, 5, 0}) {
      at::Tensor got = torch::arange(10.f), want = torch::arange(10.f);
      EXPECT_TRUE(test::same_values(fast({got.slice(0, offset, offset + 4)})[0],
                                    fn({want.slice(0, offset, offset + 4)})[0]));
      EXPECT_TRUE(test::same_values(got, want)) << offset;
    }
  }
}

TEST(Functionalize, OverlappingViews) {
  compare_both(
      [](const Tensors& in) {
        at::Tensor flat = in[0].view({-1}), left = flat.slice(0, 0, 8), right = flat.slice(0, 4, 12);
        left.mul_(2);
        right.add_(1);
        at::Tensor seen = left.sin();
        right.slice(0, 0, 4).mul_(left.slice(0, 4, 8));
        return Tensors{seen, left * right, in[0].cos()};
      },
      grid, {.compiled = false});  // with grad libtorch refuses a part of the gradients
}

TEST(Functionalize, Chains) {
  compare_both(
      [](const Tensors& in) {
        at::Tensor x = in[0].exp();
        x.add_(1).mul_(2).relu_().t_().sub_(0.5).t_();
        x[0].zero_();
        x.sigmoid_();
        return Tensors{x, x * in[0]};
      },
      grid, {.compiled = false});  // with grad libtorch refuses a part of the gradients
}

TEST(Functionalize, A4_AWriteToACloneIsNotAnInputWrite) {
  Callable fn = [](const Tensors& in) {
    at::Tensor b = in[0].clone().squeeze(-1);
    b.add_(1);
    return Tensors{in[0] + b};
  };
  compare_both(fn, [](bool rg) { return leaves({{3, 1}}, {rg}); });
  EXPECT_EQ(Compiled(fn, {}).explain({leaf({3, 1})}).contract.inputs[0].write, InputWrite::None);
}

TEST(Functionalize, A17_NoWriteIsLeftInsideTheGraph) {
  Explanation e =
      Compiled([](const Tensors& in) { return Tensors{(in[0] * 2).relu_()}; }, {}).explain({leaf({3})});
  for (const Node& node : e.forward.nodes()) EXPECT_NE(full_name(node.op), "aten::relu_");
  for (const Node& node : e.forward.nodes()) EXPECT_TRUE(node.writes.empty());
}

TEST(Functionalize, ManyTensorsAtOnce) {
  compare_both(
      [](const Tensors& in) {
        Tensors own = {in[0] * 2, in[1] + 1};
        at::_foreach_mul_(own, 3.);
        at::_foreach_add_(own, {in[1], in[0]});
        return Tensors{own[0].sin(), own[1].cos()};
      },
      [](bool rg) { return leaves({{3}, {3}}, {rg, rg}); });
}

TEST(Functionalize, OutVariants) {
  compare(
      [](const Tensors& in) {
        at::Tensor out = torch::empty({3}), buffer = torch::zeros({2, 3});
        at::add_out(out, in[0], in[1]);
        at::Tensor row = buffer[1];
        at::mul_out(row, in[0], in[1]);
        return Tensors{out, buffer};
      },
      leaves({{3}, {3}}, {false, false}));
  compare(
      [](const Tensors& in) {
        at::Tensor out = torch::empty({0});
        at::add_out(out, in[0], in[1]);
        return Tensors{out * 2};
      },
      leaves({{3}, {3}}, {false, false}), {.compiled = false});
}

TEST(Functionalize, OtherDtypes) {
  compare_both(
      [](const Tensors& in) {
        at::Tensor d = torch::zeros({3, 4}, at::kDouble);
        d.copy_(in[0]);
        d.add_(in[0]);
        return Tensors{d.to(at::kFloat) * 2};
      },
      grid);
  compare_both(
      [](const Tensors& in) {
        at::Tensor own = in[0] * 1;
        own.view(at::kInt).bitwise_and_(0x7fffffff);
        return Tensors{own.detach() + in[0]};
      },
      [](bool) { return leaves({{3, 4}}, {false}); }, {.compiled = false});
  compare(
      [](const Tensors& in) {
        at::Tensor z = at::complex(in[0], in[1]);
        at::real(z).mul_(2);
        return Tensors{z.abs()};
      },
      leaves({{3}, {3}}, {true, true}), {.compiled = false});
}

TEST(Functionalize, MemoryReplacedOrResizedRunsAsItIs) {
  Callable set = [](const Tensors& in) {
    torch::NoGradGuard no_grad;
    in[0].set_(in[1]);
    return Tensors{in[0] * in[1]};
  };
  for (bool keep : {true, false}) {
    Compiled fast(set, {.keep_input_mutations = keep});
    at::Tensor a = torch::ones({3, 3}), b = torch::arange(9.f).view({3, 3});
    EXPECT_TRUE(test::same_values(fast({a, b})[0], b * b));
    EXPECT_TRUE(a.storage().is_alias_of(b.storage()));
  }
  Callable resize = [](const Tensors& in) {
    at::Tensor own = in[0].clone();
    own.resize_({2, 3}).fill_(2);
    return Tensors{own};
  };
  Compiled fast(resize, {});
  EXPECT_TRUE(test::same_values(fast({torch::ones(0)})[0], torch::full({2, 3}, 2.f)));
}

TEST(Functionalize, LoopsOverElements) {
  compare_both(
      [](const Tensors& in) {
        at::Tensor out = torch::zeros({3, 4}), state = torch::zeros({4});
        for (int64_t i = 0; i < 3; ++i) {
          state = state * 0.5 + in[0][i];
          out[i] = state;
          out.index_put_({i, 0}, state.sum());
        }
        return Tensors{out, state};
      },
      grid);
}

}  // namespace
}  // namespace tandem
