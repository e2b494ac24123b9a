/// Rows of the table of behaviours as tests: a row is functions and their inputs, and what the contract below
/// leaves to say.
#pragma once

#include "runtime/compare.h"

namespace tandem::behaviours {

using test::Expectations;
using test::leaf;
using test::leaves;
using test::Maker;
using test::non_leaves;
using test::same_tensor;
using test::same_values;
using test::Scene;

/// A function that keeps the contract on each of these inputs: values, gradients of every original input,
/// requires_grad, is_leaf, aliasing, inputs afterwards, later writes to outputs; writes kept and returned,
/// every assumption of the run time checked.
struct Case {
  Callable fn;
  std::vector<Maker> inputs;
  Expectations expect = {};
  bool cached = true;  ///< false: it runs code that has no name
};

struct Row {
  std::string id;
  std::vector<Case> cases = {};
  std::function<void()> check = {};  ///< what the contract does not say
  /// whose clauses wait; with neither cases nor check the whole row does
  std::string waits_for = {};
  std::string does_not_apply = {};  ///< and why
};

/// Makes each row a test `Behaviours.<id>` and a line of the table that is printed behind the last one.
bool add_rows(std::vector<Row> rows);

/// Versions for custom functions of rows, which are in no cache without.
template <class... Functions>
bool give_versions() {
  (register_function<Functions>("1"), ...);
  return true;
}

/// Runs one case; what ran uncompiled, and why, is said in the table.
void hold(const Case& c);
/// Puts a remark behind the row that is being run.
void remark(const std::string& text);

/// Expectations of functions that may run as they are.
inline Expectations uncompiled(Expectations expect = {}) {
  expect.compiled = false;
  return expect;
}

/// Once without and once with gradients.
inline std::vector<Maker> both(const std::function<Maker(bool requires_grad)>& make) {
  return {make(false), make(true)};
}
/// One square matrix, or several, that are no leaves where they require grad.
inline std::vector<Maker> squares(size_t count) {
  return both([=](bool rg) {
    return non_leaves(std::vector<std::vector<int64_t>>(count, {2, 2}), std::vector<bool>(count, rg));
  });
}

/// Arguments that `cut` makes of one tensor, a leaf plus one; the tensor itself is compared too.
inline Maker cut_from(std::vector<int64_t> sizes, bool requires_grad,
                      std::function<Tensors(at::Tensor)> cut) {
  return [=] {
    Scene scene = non_leaves({sizes}, {requires_grad})();
    scene.others = scene.arguments;
    scene.arguments = cut(scene.others[0]);
    return scene;
  };
}
inline std::vector<Maker> both_cut_from(std::vector<int64_t> sizes,
                                        const std::function<Tensors(at::Tensor)>& cut) {
  return {cut_from(sizes, false, cut), cut_from(sizes, true, cut)};
}

/// The first argument of `make` in every one of `times` places.
inline Maker repeated(const Maker& make, size_t times) {
  return [=] {
    Scene scene = make();
    scene.arguments.assign(times, at::Tensor(scene.arguments[0]));
    return scene;
  };
}

}  // namespace tandem::behaviours
