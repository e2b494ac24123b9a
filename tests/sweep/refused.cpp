// Operators whose results cannot be known ahead of the data: refused by name, never guessed.
#include "sweep.h"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>
#include <gtest/gtest.h>
#include <tandem/tandem.h>

namespace tandem::sweep {

namespace {

struct Refusal {
  std::string name, named;  ///< the operator, and the one inside it that the error names
  Sample sample;
  Function function;

  template <class F>
  Refusal(std::string name_, std::string named_, Sample sample_, F)
      : name(std::move(name_)), named(std::move(named_)), sample(std::move(sample_)), function(&call<F>) {}
};

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> rows = {
      {"item", "_local_scalar_dense", {f({}), f({3})}, [](In x, In y) { return y * x.item(); }},
      {"masked_select",
       "masked_select",
       {f({5, 7}), mask({5, 7})},
       [](In x, In m) { return at::masked_select(x, m); }},
      {"index_by_mask", "index", {f({5, 7}), mask({5, 7})}, [](In x, In m) { return x.index({m}); }},
      {"nonzero", "nonzero", {f({5, 7})}, [](In x) { return at::nonzero(x).to(at::kFloat) * x.sum(); }},
      {"unique", "_unique2", {f({7})}, [](In x) { return std::get<0>(at::_unique2(x.detach())).sum() * x; }},
      {"bincount",
       "bincount",
       {f({7}), index({7}, 4)},
       [](In x, In i) { return at::bincount(i).to(at::kFloat) * x.sum(); }},
      {"linalg_lstsq",
       "linalg_lstsq",
       {f({5, 3}), f({5, 2})},
       [](In a, In b) { return std::get<0>(at::linalg_lstsq(a, b, std::nullopt, "gels")); }},
      {"allclose", "", {f({5}), f({5})}, [](In x, In y) { return at::allclose(x, y) ? x : y; }},
  };
  return rows;
}

/// libtorch reads data inside these, in the forward or only in the backward; their results can be known, so
/// calls run as they are.
const std::vector<Refusal>& uncompiled() {
  static const std::vector<Refusal> rows = {
      {"repeat_interleave",
       "repeat_interleave",
       {f({3, 4}), index({3}, 3)},
       [](In x, In repeats) { return at::repeat_interleave(x, repeats, 0); }},
      {"one_hot",
       "one_hot",
       {f({5, 7}), index({4}, 5)},
       [](In x, In i) { return at::one_hot(i).to(at::kFloat).sum() * x; }},
      {"combinations", "masked_select", {f({4})}, [](In x) { return at::combinations(x); }},
      {"cross_entropy_loss_of_weighted_mean",
       "masked_select",
       {f({5, 7}), index({5}, 7), f({7}).in(0.5, 1).constant()},
       [](In x, In t, In w) { return at::cross_entropy_loss(x, t, w, at::Reduction::Mean, -100, 0.1); }},
      {"ctc_loss_of_tensor_lengths",
       "ctc_loss",
       {f({6, 2, 5}), index({2, 3}, 4), index({2}, 2), index({2}, 2)},
       [](In x, In t, In long_by, In short_by) {
         return at::ctc_loss(x.log_softmax(-1), t + 1, 6 - long_by, 3 - short_by);
       }},
      {"masked_fill_backward_of_value",
       "masked_select",
       {f({5, 7}), mask({5, 7}), f({})},
       [](In x, In m, In value) { return at::masked_fill(x, m, value); }},
      {"index_fill_backward_of_value",
       "_unique",
       {f({5, 7}), index({4}, 5), f({})},
       [](In x, In i, In value) { return at::index_fill(x, 0, i, value); }},
      {"index_put_backward_of_value",
       "index",
       {f({5, 7}), mask({5, 7}), f({})},
       [](In x, In m, In value) { return at::index_put(x, {m}, value); }},
  };
  return rows;
}

/// Some are refused only when the backward is recorded.
void train(const Callable& function, const Tensors& inputs) {
  at::Tensor result = function(inputs)[0];
  if (result.requires_grad()) result.sum().backward();
}

class Refused : public testing::Test {
 public:
  explicit Refused(const Refusal& row) : row_(row) {}

  void TestBody() override {
    at::manual_seed(1);
    Tensors inputs = make(row_.sample);
    train(row_.function, inputs);
    at::manual_seed(1);
    const at::Tensor wanted = row_.function(inputs)[0];
    at::manual_seed(1);
    const at::Tensor got =
        compile(Callable(row_.function), Options{.backend = "eager", .name = row_.name})(inputs)[0];
    EXPECT_TRUE(got.sizes() == wanted.sizes() && (got.is_sparse() || at::equal(got, wanted)))
        << "run as it is, it gives something else";
    Compiled compiled = compile(Callable(row_.function),
                                Options{.backend = "eager", .must_compile = true, .name = row_.name});
    try {
      train(compiled, inputs);
      FAIL() << "was compiled";
    } catch (const UnsupportedError& error) {
      EXPECT_NE(std::string(error.what()).find(row_.named), std::string::npos) << error.what();
    }
  }

 private:
  const Refusal& row_;
};

class Uncompiled : public testing::Test {
 public:
  explicit Uncompiled(const Refusal& row) : row_(row) {}

  void TestBody() override {
    at::manual_seed(1);
    Tensors inputs = make(row_.sample);
    Compiled compiled = compile(Callable(row_.function), Options{.backend = "eager", .name = row_.name});
    std::string reason = compiled.explain(inputs).eager_reason;
    EXPECT_NE(reason.find(row_.named), std::string::npos) << reason;
    EXPECT_TRUE(at::equal(compiled(inputs)[0], row_.function(inputs)[0]));
  }

 private:
  const Refusal& row_;
};

const bool registered = [] {
  for (const Refusal& row : uncompiled()) {
    testing::RegisterTest("SweepUncompiled", row.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [&row]() -> testing::Test* { return new Uncompiled(row); });
  }
  for (const Refusal& row : refusals()) {
    testing::RegisterTest("SweepRefused", row.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [&row]() -> testing::Test* { return new Refused(row); });
  }
  return true;
}();

}  // namespace

}  // namespace tandem::sweep
