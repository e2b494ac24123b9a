#include "passes/norm_formulas.h"

#include <algorithm>

namespace tandem {
namespace {

/// What each of the operators is asked for; they differ in where their arguments are, and what they return.
struct BatchNormCall {
  Value x, weight, bias, running_mean, running_variance;
  bool training;
  double momentum, epsilon;
};

/// Parameters and statistics are [C], data is [N, C, *].
struct Channels {
  Axes others, broadcast;  ///< all dimensions of the data but C; [1, C, *]
  int64_t count;           ///< of elements of a channel

  Channels(LoopFormula& f, Value x) : others(axes_between(2, f.rank(x))), broadcast(f.rank(x), 1) {
    others.insert(others.begin(), 0);
    broadcast[1] = f.sizes(x)[1];
    count = f.extent(x, others);
  }
  Value spread(LoopFormula& f, Value v) const { return v ? f.view(v, broadcast) : Value(); }
  Value gather(LoopFormula& f, Value v) const { return f.view(v, {broadcast[1]}); }
};

struct RunningStatistics {
  Value mean, variance;
};

/// The data normalised, the two statistics that its backward reads, and the running ones afterwards.
struct BatchNorm {
  std::vector<Value> results;
  RunningStatistics running;
};

Value no_elements(LoopFormula& f, Value like) {
  const TensorMeta meta = f.meta(like);
  return f.call("aten::zeros", {c10::IValue(Axes{0}), c10::IValue(int64_t(meta.dtype)), c10::IValue(),
                                c10::IValue(meta.device)});
}

RunningStatistics updated(LoopFormula& f, const BatchNormCall& call, Value mean, Value variance,
                          int64_t count) {
  if (!call.running_mean) return {};
  auto blend = [&](Value before, Value now, double factor) {
    return f.add(f.mul(before, 1 - call.momentum), f.mul(now, call.momentum * factor));
  };
  // What is kept is unbiased; of a single element that is NaN, as it is in libtorch.
  const double unbiased = double(count) / double(count - 1);
  return {blend(call.running_mean, mean, 1), blend(call.running_variance, variance, unbiased)};
}

Value scaled_and_shifted(LoopFormula& f, const Channels& channels, const BatchNormCall& call,
                         Value normalised) {
  return f.plus(f.times(normalised, channels.spread(f, call.weight)), channels.spread(f, call.bias));
}

BatchNorm train(LoopFormula& f, const BatchNormCall& call) {
  const Channels channels(f, call.x);
  auto [mean, differences, variance] = spread_of(f, call.x, channels.others);
  Value inverse = inverse_deviation(f, variance, call.epsilon);
  Value kept_mean = channels.gather(f, mean);
  return {{scaled_and_shifted(f, channels, call, f.mul(differences, inverse)), kept_mean,
           channels.gather(f, inverse)},
          updated(f, call, kept_mean, channels.gather(f, variance), channels.count)};
}

BatchNorm infer(LoopFormula& f, const BatchNormCall& call) {
  const Channels channels(f, call.x);
  Value inverse = inverse_deviation(f, call.running_variance, call.epsilon);
  Value normalised = f.mul(f.sub(call.x, channels.spread(f, call.running_mean)), channels.spread(f, inverse));
  return {{scaled_and_shifted(f, channels, call, normalised), no_elements(f, f.result(1)),
           no_elements(f, f.result(2))},
          {call.running_mean, call.running_variance}};
}

/// Whether the call says what it writes: what it writes unseen only the call itself can write.
bool says_its_writes(const LoopFormula& f, const BatchNormCall& call) {
  const auto& writes = f.replaced().writes;
  auto named = [&](Value statistic) {
    return std::any_of(writes.begin(), writes.end(), [&](const auto& write) {
      return write.first == statistic && write.second != statistic;
    });
  };
  return !call.training || !call.running_mean || (named(call.running_mean) && named(call.running_variance));
}

/// The values that each form of the operator returns before those of written arguments.
std::vector<Value> answer(LoopFormula& f, const BatchNormCall& call, bool functional) {
  const bool statistics = call.running_mean && call.running_variance;
  if (!call.training && !statistics) return {};
  if (!functional && !says_its_writes(f, call)) return {};
  BatchNorm made = call.training ? train(f, call) : infer(f, call);
  std::vector<Value> answers = std::move(made.results);
  const size_t reserve = answers.size(), plain = f.replaced().results.size() - (functional ? 2 : 0);
  if (plain > reserve) answers.push_back(no_elements(f, f.result(reserve)));
  if (functional) answers.insert(answers.end(), {made.running.mean, made.running.variance});
  for (const auto& [before, after] : f.replaced().writes)
    answers.push_back(before == call.running_mean ? made.running.mean : made.running.variance);
  return answers;
}

/// With statistics at arguments 3 and 4, and momentum and epsilon as the last two.
BatchNormCall call_with_statistics(LoopFormula& f, bool training) {
  const size_t end = f.replaced().arguments.size();
  return {f.tensor(0), f.tensor(1), f.tensor(2),       f.tensor(3),
          f.tensor(4), training,    f.number(end - 2), f.number(end - 1)};
}

std::vector<Value> batch_norm(LoopFormula& f) {
  return answer(f, call_with_statistics(f, f.constant(5).toBool()), false);
}
std::vector<Value> functional_batch_norm(LoopFormula& f) {
  return answer(f, call_with_statistics(f, f.constant(5).toBool()), true);
}
std::vector<Value> trained_batch_norm(LoopFormula& f) {
  return answer(f, call_with_statistics(f, true), false);
}
std::vector<Value> functional_trained_batch_norm(LoopFormula& f) {
  return answer(f, call_with_statistics(f, true), true);
}
std::vector<Value> inferring_batch_norm(LoopFormula& f) {
  return answer(f, call_with_statistics(f, false), false);
}
std::vector<Value> batch_norm_without_statistics(LoopFormula& f) {
  return answer(f,
                {f.tensor(0), f.tensor(1), f.tensor(2), Value(), Value(), f.constant(3).toBool(), f.number(4),
                 f.number(5)},
                false);
}

std::vector<Value> batch_norm_backward(LoopFormula& f) {
  Value gradient = f.tensor(0), x = f.tensor(1);
  const bool trained = f.constant(7).toBool();
  if (!f.tensor(trained ? 5 : 3) || !f.tensor(trained ? 6 : 4)) return {};
  const Channels channels(f, x);
  Value weight = channels.spread(f, f.tensor(2)), mean = channels.spread(f, f.tensor(trained ? 5 : 3));
  Value inverse = channels.spread(f, trained ? f.tensor(6) : inverse_deviation(f, f.tensor(4), f.number(8)));
  Value normalised = f.mul(f.sub(x, mean), inverse);
  // The weight is one number for all that is folded, which can wait: the parameters' gradients are these
  // sums.
  const GradientSums sums{f.sum(gradient, channels.others),
                          f.sum(f.mul(gradient, normalised), channels.others)};
  std::vector<Value> made;
  if (f.result(0)) {
    Value scale = f.times(inverse, weight);
    made.push_back(trained ? normalisation_backward(f, gradient, normalised, scale, sums, channels.count)
                           : f.mul(gradient, scale));
  }
  if (f.result(1)) made.push_back(channels.gather(f, sums.along));
  if (f.result(2)) made.push_back(channels.gather(f, sums.plain));
  return made;
}

constexpr LoopRow batch_norm_table[] = {
    {"aten::native_batch_norm", batch_norm},
    {"aten::_native_batch_norm_legit", batch_norm},
    {"aten::_native_batch_norm_legit.no_stats", batch_norm_without_statistics},
    {"aten::_native_batch_norm_legit_no_training", inferring_batch_norm},
    {"aten::_native_batch_norm_legit_functional", functional_batch_norm},
    {"aten::_batch_norm_with_update", trained_batch_norm},
    {"aten::_batch_norm_with_update_functional", functional_trained_batch_norm},
    {"aten::_batch_norm_no_update", inferring_batch_norm},
    {"aten::native_batch_norm_backward", batch_norm_backward},
    {"aten::batch_norm_backward", batch_norm_backward},
};

}  // namespace

std::span<const LoopRow> batch_norm_rows() { return batch_norm_table; }

}  // namespace tandem
