// What a trace cannot hold: data-dependent operators are refused by name and place, other kinds of tensors
// run as they are.
#include "runtime/compare.h"

#include <torch/csrc/autograd/autograd.h>

namespace tandem {
namespace {

using test::contains;
using test::leaf;
using test::message;
using test::same_values;

struct Refused {
  const char* op;
  Callable fn;
  int line;
};

#define REFUSED(op, ...)                                                 \
  Refused {                                                              \
    op, [](const Tensors& in) { return Tensors{__VA_ARGS__}; }, __LINE__ \
  }

TEST(DataDependent, OperatorsAreRefusedWithTheirNameAndPlace) {
  const std::vector<Refused> all = {
      REFUSED("item", in[0] * in[0].sum().item<float>()),
      REFUSED("masked_select", in[0].masked_select(in[0] > 0)),
      REFUSED("nonzero", in[0].nonzero()),
      REFUSED("aten::index", in[0].index({in[0] > 0})),
      REFUSED("unique", std::get<0>(at::_unique(in[0]))),
      REFUSED("equal", in[0] * double(in[0].equal(in[0] + 1))),
      REFUSED("item", in[0] * (in[0].sum().item().toDouble() > 0 ? 1 : 2)),
      REFUSED("item", in[0].slice(0, 0, in[0].argmax().item<int64_t>())),
  };
  for (const Refused& refused : all) {
    std::string error =
        message<UnsupportedError>([&] { Compiled(refused.fn, {.must_compile = true})({leaf({4})}); });
    EXPECT_TRUE(contains(error, refused.op)) << refused.op << ": " << error;
#ifdef TANDEM_HAVE_LIBDW
    EXPECT_TRUE(contains(error, "refused_test.cpp:" + std::to_string(refused.line)))
        << refused.op << ": " << error;
#endif
  }
  for (const Refused& refused : all) {
    at::Tensor a = leaf({4});
    EXPECT_TRUE(same_values(Compiled(refused.fn, {})({a})[0], refused.fn({a})[0])) << refused.op;
  }
#ifndef TANDEM_HAVE_LIBDW
  if (!HasFailure()) GTEST_SKIP() << "built without libdw: names were checked, places in the source were not";
#endif
}

TEST(DataDependent, ComparingATensorWithItselfIsAnswered) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0] * (in[0].equal(in[0]) ? 2. : 3.)}; }, {});
  at::Tensor a = leaf({3});
  EXPECT_TRUE(same_values(fast({a})[0], a * 2));
}

TEST(DataDependent, ADataPointerIsRefused) {
  const Callable fn = [](const Tensors& in) { return Tensors{in[0] * in[0].data_ptr<float>()[0]}; };
  EXPECT_THROW(Compiled(fn, {.must_compile = true})({torch::ones(3)}), UnsupportedError);
  EXPECT_TRUE(same_values(Compiled(fn, {})({torch::ones(3) * 3})[0], torch::ones(3) * 9));
}

// ---- kinds of tensors that are not compiled

/// Gives what the function itself gives, run as it is, and says why.
void expect_eager(const Callable& fn, const Tensors& arguments, const std::string& reason) {
  Compiled fast(fn, {});
  EXPECT_TRUE(contains(fast.explain(arguments).eager_reason, reason)) << fast.explain(arguments).eager_reason;
  for (int round = 0; round < 2; ++round) EXPECT_TRUE(same_values(fast(arguments)[0], fn(arguments)[0]));
}

TEST(OtherKinds, SparseArguments) {
  at::Tensor sparse = torch::eye(3).to_sparse();
  expect_eager([](const Tensors& in) { return Tensors{in[0].mm(in[1])}; }, {sparse, leaf({3, 3})}, "sparse");
  expect_eager([](const Tensors& in) { return Tensors{in[0].to_dense() * in[1]}; },
               {torch::eye(3).to_sparse_csr(), leaf({3, 3})}, "sparse");
}

TEST(OtherKinds, SparseCaptures) {
  at::Tensor sparse = torch::eye(3).to_sparse();
  expect_eager([&](const Tensors& in) { return Tensors{sparse.mm(in[0])}; }, {leaf({3, 3})}, "sparse");
}

TEST(OtherKinds, SparseMadeInside) {
  Callable fn = [](const Tensors& in) { return Tensors{in[0].to_sparse().to_dense() * 2}; };
  Compiled fast(fn, {});
  at::Tensor a = leaf({3, 3});
  std::string error = message<UnsupportedError>([&] { EXPECT_TRUE(same_values(fast({a})[0], fn({a})[0])); });
  EXPECT_TRUE(error.empty() || contains(error, "Sparse")) << error;
}

TEST(OtherKinds, Quantised) {
  at::Tensor quantised = torch::quantize_per_tensor(torch::randn({3}), 0.1, 0, at::kQInt8);
  expect_eager([](const Tensors& in) { return Tensors{in[0].dequantize() * in[1]}; }, {quantised, leaf({3})},
               "quantised");
  expect_eager([quantised](const Tensors& in) { return Tensors{quantised.dequantize() * in[0]}; },
               {leaf({3})}, "quantised");
}

TEST(OtherKinds, Nested) {
  at::Tensor nested = at::_nested_tensor_from_tensor_list({torch::ones(2), torch::ones(3)});
  expect_eager([](const Tensors& in) { return Tensors{(in[0] * 2).to_padded_tensor(0.) + in[1]}; },
               {nested, leaf({2, 3})}, "nested");
}

TEST(OtherKinds, Mkldnn) {
  if (!at::hasMKLDNN()) GTEST_SKIP() << "libtorch without mkldnn";
  at::Tensor mkldnn = torch::randn({3, 3}).to_mkldnn();
  expect_eager([](const Tensors& in) { return Tensors{in[0].relu().to_dense() + in[1]}; },
               {mkldnn, leaf({3, 3})}, "mkldnn");
}

TEST(OtherKinds, ForwardModeDuals) {
  using namespace torch::autograd;
  uint64_t level = forward_ad::enter_dual_level();
  {
    at::Tensor dual = at::_make_dual(torch::ones(3), torch::full({3}, 2.f), int64_t(level));
    Callable fn = [](const Tensors& in) { return Tensors{in[0].exp()}; };
    Compiled fast(fn, {});
    EXPECT_TRUE(contains(fast.explain({dual}).eager_reason, "dual"));
    at::Tensor got = fast({dual})[0], want = fn({dual})[0];
    EXPECT_TRUE(same_values(got, want));
    EXPECT_TRUE(same_values(got._fw_grad(level), want._fw_grad(level)));
  }
  forward_ad::exit_dual_level(level);
}

TEST(OtherKinds, AnOrdinaryCallAfterwardsIsCompiled) {
  Compiled fast([](const Tensors& in) { return Tensors{in[0].to_dense() * 2}; }, {});
  EXPECT_TRUE(same_values(fast({torch::eye(2).to_sparse()})[0], torch::eye(2) * 2));
  EXPECT_EQ(fast.explain({torch::eye(2)}).eager_reason, "");
  EXPECT_TRUE(same_values(fast({torch::eye(2)})[0], torch::eye(2) * 2));
}

TEST(OtherKinds, ComplexConjugatesAndNegatives) {
  at::Tensor z = torch::randn({3}, at::kComplexFloat).requires_grad_();
  Callable fn = [](const Tensors& in) { return Tensors{in[0] * in[1], at::imag(in[0]) * 2}; };
  Compiled fast(fn, {});
  for (const at::Tensor& view : {z + 0, (z + 0).conj(), (z + 0).conj().detach()}) {
    Tensors got = fast({view, z}), want = fn({view, z});
    for (size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(
          same_values(at::resolve_neg(at::resolve_conj(got[i])), at::resolve_neg(at::resolve_conj(want[i]))))
          << i;
    EXPECT_TRUE(same_values(torch::autograd::grad({got[0].abs().sum()}, {z})[0],
                            torch::autograd::grad({want[0].abs().sum()}, {z})[0]));
  }
}

TEST(OtherKinds, EmptyAndZeroDimensional) {
  test::compare([](const Tensors& in) { return Tensors{in[0].sum() + in[1], in[0].exp(), in[0].t()}; },
                test::leaves({{0, 3}, {}}, {true, true}), {.compiled = false, .write_outputs = false});
}

}  // namespace
}  // namespace tandem
