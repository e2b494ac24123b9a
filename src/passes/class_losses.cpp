#include "passes/loop_formulas.h"

#include <ATen/core/Reduction.h>

namespace tandem {
namespace {

/// Scores are [N, C, *] and the classes wanted [N, *], or [C] and one class. Looking at all C for the one
/// that is wanted needs no gather, so that scores need not be in memory, and no scatter.
/// Indices of 32 bits fill vectors as scores do.
struct WantedClasses {
  Value scores, wanted, weight;  ///< the last two broadcast with the scores
  int64_t axis, count, ignored;

  WantedClasses(LoopFormula& f, size_t scores_at, int64_t ignored_class)
      : scores(f.tensor(scores_at)), axis(f.rank(scores) > 1), ignored(ignored_class) {
    count = f.sizes(scores)[axis];
    wanted = f.call("aten::unsqueeze", {f.tensor(scores_at + 1), c10::IValue(axis)});
    weight = f.tensor(scores_at + 2) ? along_axis(f, f.tensor(scores_at + 2)) : Value();
  }

  /// Whether each of the scores is that of the class wanted, and counts.
  Value chosen(LoopFormula& f) const {
    const c10::Device device = f.meta(scores).device;
    // A class that there is not is an error of the forward, but for the one that is ignored.
    const bool fits = count <= INT32_MAX && ignored >= INT32_MIN && ignored <= INT32_MAX;
    const at::ScalarType narrow = fits ? at::kInt : at::kLong;
    Value classes = f.call("aten::arange", {c10::IValue(count), c10::IValue(int64_t(narrow)), c10::IValue(),
                                            c10::IValue(device)});
    Value equal = f.call("aten::eq.Tensor", {f.cast(wanted, narrow), along_axis(f, classes)});
    if (ignored < 0 || ignored >= count) return equal;
    return f.call("aten::logical_and", {equal, counts(f)});
  }
  Value counts(LoopFormula& f) const { return f.call("aten::ne.Scalar", {wanted, c10::IValue(ignored)}); }

  /// Fails where libtorch does: of a class that there is not.
  void check(LoopFormula& f) const {
    auto compare = [&](const char* op, int64_t number) { return f.call(op, {wanted, c10::IValue(number)}); };
    Value inside =
        f.call("aten::logical_and", {compare("aten::ge.Scalar", 0), compare("aten::lt.Scalar", count)});
    Value fits = f.call("aten::logical_or", {inside, compare("aten::eq.Scalar", ignored)});
    f.node("aten::_assert_async.msg", {f.apply("aten::all", fits), c10::IValue("Target is out of bounds.")});
  }

 private:
  Value along_axis(LoopFormula& f, Value v) const {
    if (f.rank(scores) <= 2) return v;
    Axes sizes(f.rank(scores) - 1, 1);
    sizes[0] = count;
    return f.view(v, sizes);
  }
};

Value zero(LoopFormula& f, Value like) { return f.scalar(c10::IValue(0.0), like); }

/// The sum of the weights of what counts.
Value total_weight(LoopFormula& f, const WantedClasses& classes, Value chosen) {
  Value scores = classes.scores;
  Value each = classes.weight
                   ? f.where(chosen, classes.weight, zero(f, scores))
                   : f.where(classes.counts(f), f.scalar(c10::IValue(1.0), scores), zero(f, scores));
  return f.as_sized(f.sum(each, axes_between(0, f.rank(each))), f.result(1));
}

/// Where the scores lie in memory libtorch reads one of each row.
std::vector<Value> nll_loss(LoopFormula& f) {
  if (!f.is_made_by_loops(f.tensor(0))) return {};
  const WantedClasses classes(f, 0, f.constant(4).toInt());
  classes.check(f);
  Value chosen = classes.chosen(f), scores = classes.scores;
  Value loss = f.apply("aten::neg", f.times(scores, classes.weight));
  loss = f.sum(f.where(chosen, loss, zero(f, scores)), {classes.axis});
  const int64_t how = f.constant(3).toInt();
  if (how == at::Reduction::None && f.rank(scores) > 1)
    return {f.as_sized(loss, f.result(0)), zero(f, scores)};
  Value total = total_weight(f, classes, chosen);
  loss = f.as_sized(f.sum(loss, axes_between(0, f.rank(loss))), f.result(0));
  return {how == at::Reduction::Mean ? f.div(loss, total) : loss, total};
}

std::vector<Value> nll_loss_backward(LoopFormula& f) {
  const WantedClasses classes(f, 1, f.constant(5).toInt());
  Value gradient = f.tensor(0);
  const int64_t how = f.constant(4).toInt();
  if (how == at::Reduction::None && f.rank(classes.scores) > 1)
    gradient = f.call("aten::unsqueeze", {gradient, c10::IValue(classes.axis)});
  if (how == at::Reduction::Mean) gradient = f.div(gradient, f.tensor(6));
  gradient = f.times(f.apply("aten::neg", gradient), classes.weight);
  return {f.where(classes.chosen(f), gradient, zero(f, classes.scores))};
}

constexpr LoopRow class_loss_table[] = {
    {"aten::nll_loss_forward", nll_loss},
    {"aten::nll_loss2d_forward", nll_loss},
    {"aten::nll_loss_backward", nll_loss_backward},
    {"aten::nll_loss2d_backward", nll_loss_backward},
};

}  // namespace

std::span<const LoopRow> class_loss_rows() { return class_loss_table; }

}  // namespace tandem
