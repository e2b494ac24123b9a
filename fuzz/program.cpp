#include "fuzz/program.h"

#include "fuzz/views.h"

#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <optional>

namespace tandem::fuzz {

namespace {

/// `sizes` in the layout, filled with numbers of the dtype.
at::Tensor make_data(const Given& given) {
  const at::Tensor data =
      laid_out(given.layout, given.sizes, [&](const Ints& sizes) { return numbers(given.dtype, sizes); });
  return given.requires_grad ? data.requires_grad_() : data;
}

at::Tensor make_given(const Given& given, Scene& scene) {
  if (given.origin == Origin::Same) return scene.pool[given.of];
  if (given.origin == Origin::View) return given_views()[given.view].run(scene.pool[given.of]);
  at::Tensor leaf = make_data(given);
  if (given.requires_grad) scene.leaves.push_back(leaf);
  return given.origin == Origin::Leaf ? leaf : leaf.clone();
}

}  // namespace

at::Tensor numbers(at::ScalarType dtype, const Ints& sizes) {
  if (dtype == at::kLong) return torch::randint(0, 3, sizes, at::kLong);
  if (dtype == at::kBool) return torch::randint(0, 2, sizes, at::kBool);
  return torch::randn(sizes, dtype);
}

Scene make_scene(const Program& program, uint64_t seed, const Scene* before) {
  torch::manual_seed(seed);
  Scene scene;
  for (size_t k = 0; k < program.given.size(); ++k) {
    const Given& given = program.given[k];
    if (before != nullptr && given.captured) {
      scene.pool.push_back(before->pool[k]);
      if (given.requires_grad && given.origin == Origin::Leaf) scene.leaves.push_back(before->pool[k]);
    } else {
      scene.pool.push_back(make_given(given, scene));
    }
  }
  return scene;
}

bool keeps_state(const Program& program) {
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [](const Step& step) { return rows()[step.row].kind == Kind::State; });
}

std::vector<size_t> arguments_of(const Program& program) {
  std::vector<size_t> places;
  for (size_t k = 0; k < program.given.size(); ++k)
    if (!program.given[k].captured) places.push_back(k);
  return places;
}

namespace {

/// Of a tensor that needs grad they have its history.
Tensors filled_with(int64_t number, const Tensors& tensors) {
  Tensors numbers;
  for (const at::Tensor& t : tensors) {
    at::Tensor plain = at::full_like(t, number);
    numbers.push_back(t.requires_grad() ? at::where(at::ones_like(t, at::kBool), plain, t) : plain);
  }
  return numbers;
}

/// Where the operator does not take the numbers that are there: anything can be divided by one, and zero is
/// an index of anything.
Tensors run_for_sizes(const Row& row, const Tensors& arguments, const Ints& ints) {
  auto attempt = [&](const Tensors& given) -> std::optional<Tensors> {
    try {
      return row.run(given, ints);
    } catch (const c10::Error&) {
      return std::nullopt;
    }
  };
  if (auto results = attempt(arguments)) return *results;
  if (auto results = attempt(filled_with(1, arguments))) return *results;
  return row.run(filled_with(0, arguments), ints);
}

}  // namespace

namespace {

/// To autograd a tensor that was written is another one, whatever it holds.
void write_for_nobody(const Step& step, const Tensors& arguments) {
  try {
    at::AutoGradMode mode(!step.no_grad && at::GradMode::is_enabled());
    rows()[step.row].run(arguments, step.ints);
  } catch (const c10::Error&) {
    for (size_t a = 0; a < arguments.size(); ++a)
      if (arguments[a].defined() && std::find(step.only_counted.begin(), step.only_counted.end(),
                                              step.arguments[a]) != step.only_counted.end())
        torch::autograd::impl::bump_version(arguments[a]);
  }
}

}  // namespace

Tensors interpret(const Program& program, Tensors pool) {
  for (const Step& step : program.steps) {
    Tensors arguments;
    for (size_t place : step.arguments) arguments.push_back(place < pool.size() ? pool[place] : at::Tensor());
    if (!step.only_counted.empty()) {
      write_for_nobody(step, arguments);
      continue;
    }
    Tensors results;
    {
      at::AutoGradMode mode(!step.no_grad && at::GradMode::is_enabled());
      results = step.sizes_alone ? run_for_sizes(rows()[step.row], arguments, step.ints)
                                 : rows()[step.row].run(std::move(arguments), step.ints);
    }
    for (size_t r = 0; r < step.results.size(); ++r) {
      if (pool.size() <= step.results[r]) pool.resize(step.results[r] + 1);
      if (r < results.size()) pool[step.results[r]] = results[r];
    }
  }
  Tensors outputs;
  for (size_t place : program.outputs) outputs.push_back(place < pool.size() ? pool[place] : at::Tensor());
  return outputs;
}

}  // namespace tandem::fuzz
