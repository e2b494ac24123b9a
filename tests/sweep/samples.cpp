#include "samples.h"

#include <ATen/ATen.h>

#include <sstream>

namespace tandem::sweep {

namespace {

bool differentiable(at::ScalarType dtype) { return at::isFloatingType(dtype) || at::isComplexType(dtype); }

at::Tensor matrix_filled(const Spec& spec, const Sizes& sizes, at::TensorOptions options) {
  at::Tensor noise = at::empty(sizes, options).uniform_(-0.3, 0.3);
  if (spec.fill == Fill::WellConditioned)
    return noise + at::diag_embed(at::linspace(1, 2, sizes.back(), options));
  return at::matmul(noise, noise.mT()) + at::diag_embed(at::linspace(1, 2, sizes.back(), options));
}

at::Tensor filled(const Spec& spec, const Sizes& sizes) {
  at::TensorOptions options = at::TensorOptions(spec.dtype);
  switch (spec.fill) {
    case Fill::Integer:
      return at::randint(int64_t(spec.low), int64_t(spec.high), sizes, options);
    case Fill::Sorted: {
      at::Tensor ascending =
          std::get<0>(at::randint(int64_t(spec.low), int64_t(spec.high), sizes, options).sort());
      return ascending - ascending.select(-1, 0).unsqueeze(-1);
    }
    case Fill::Boolean:
      return at::rand(sizes) < 0.5;
    case Fill::Holed: {
      at::Tensor values = at::empty(sizes, options).uniform_(spec.low, spec.high);
      values.view(-1).slice(0, 1, std::nullopt, 3).fill_(NAN);
      return values;
    }
    case Fill::PositiveDefinite:
    case Fill::WellConditioned:
      return matrix_filled(spec, sizes, options);
    default:
      break;
  }
  if (at::isComplexType(spec.dtype)) return at::randn(sizes, options);
  return at::empty(sizes, options).uniform_(spec.low, spec.high);
}

at::Tensor laid_out(const Spec& spec) {
  Sizes sizes = spec.sizes;
  switch (spec.layout) {
    case Layout::Contiguous:
      return filled(spec, sizes);
    case Layout::Transposed:
      std::swap(sizes.at(sizes.size() - 1), sizes.at(sizes.size() - 2));
      return filled(spec, sizes).transpose(-1, -2);
    case Layout::Sliced:
      sizes.back() = 2 * sizes.back() + 1;
      return filled(spec, sizes).slice(-1, 1, std::nullopt, 2);
    case Layout::Expanded:
      sizes.front() = 1;
      return filled(spec, sizes).expand(spec.sizes);
    case Layout::ChannelsLast:
      return filled(spec, sizes)
          .contiguous(sizes.size() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast);
  }
  return {};
}

}  // namespace

Spec Spec::with_layout(Layout other) const {
  Spec changed = *this;
  changed.layout = other;
  return changed;
}

Spec Spec::f64() const {
  Spec changed = *this;
  if (dtype == at::kFloat) changed.dtype = at::kDouble;
  if (dtype == at::kComplexFloat) changed.dtype = at::kComplexDouble;
  return changed;
}

Spec Spec::constant() const {
  Spec changed = *this;
  changed.grad = false;
  return changed;
}

Spec Spec::in(double from, double to) const {
  Spec changed = *this;
  changed.low = from;
  changed.high = to;
  return changed;
}

Spec f(Sizes sizes) { return {.sizes = std::move(sizes)}; }
Spec c(Sizes sizes) { return {.sizes = std::move(sizes), .dtype = at::kComplexFloat}; }
Spec index(Sizes sizes, int64_t below) {
  return {
      .sizes = std::move(sizes), .dtype = at::kLong, .fill = Fill::Integer, .low = 0, .high = double(below)};
}
Spec sorted(Sizes sizes, int64_t below) {
  return {
      .sizes = std::move(sizes), .dtype = at::kLong, .fill = Fill::Sorted, .low = 0, .high = double(below)};
}
Spec mask(Sizes sizes) { return {.sizes = std::move(sizes), .dtype = at::kBool, .fill = Fill::Boolean}; }
Spec holed(Sizes sizes) { return {.sizes = std::move(sizes), .fill = Fill::Holed}; }
Spec spd(Sizes sizes) { return {.sizes = std::move(sizes), .fill = Fill::PositiveDefinite}; }
Spec square(Sizes sizes) { return {.sizes = std::move(sizes), .fill = Fill::WellConditioned}; }
Spec none() { return {.sizes = {}, .fill = Fill::None}; }

std::string to_string(const Sample& sample) {
  static const char* const layouts[] = {"", " transposed", " sliced", " expanded", " channels-last"};
  std::ostringstream text;
  for (const Spec& spec : sample) {
    if (&spec != &sample.front()) text << ", ";
    if (spec.fill == Fill::None)
      text << "none";
    else
      text << spec.dtype << at::IntArrayRef(spec.sizes) << layouts[size_t(spec.layout)];
  }
  return text.str();
}

Tensors make(const Sample& sample) {
  Tensors inputs;
  for (const Spec& spec : sample) {
    if (spec.fill == Fill::None) {
      inputs.emplace_back();
      continue;
    }
    at::Tensor leaf = laid_out(spec).detach();
    inputs.push_back(leaf.set_requires_grad(spec.grad && differentiable(spec.dtype)));
  }
  return inputs;
}

Samples both(const Samples& samples) {
  Samples doubled = samples;
  for (const Sample& sample : samples) {
    Sample& wide = doubled.emplace_back();
    for (const Spec& spec : sample) wide.push_back(spec.f64());
  }
  return doubled;
}

Samples operator+(Samples left, const Samples& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Samples with(const Samples& samples, const Sample& more) {
  Samples longer = samples;
  for (Sample& sample : longer) {
    for (const Spec& spec : more) sample.push_back(sample.front().dtype == at::kDouble ? spec.f64() : spec);
  }
  return longer;
}

}  // namespace tandem::sweep
