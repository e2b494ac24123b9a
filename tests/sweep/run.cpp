#include "run.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>

#include "graph/geometry.h"

namespace tandem::sweep {

namespace {

std::string message(const std::exception& error) {
  const auto* of_libtorch = dynamic_cast<const c10::Error*>(&error);
  std::string text = of_libtorch ? of_libtorch->what_without_backtrace() : error.what();
  return text.empty() ? "an error without words" : text;
}

Tensors that_require_grad(const Tensors& tensors) {
  Tensors chosen;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) chosen.push_back(tensor);
  }
  return chosen;
}

/// Drawn in `dtype`, in the dtype of the output.
at::Tensor cotangent(const at::Tensor& output, Cotangents kind, at::ScalarType dtype) {
  const auto options = output.options().dtype(dtype);
  at::Tensor drawn = kind == Cotangents::Dense ? at::randn_like(output.detach(), options)
                                               : at::randn({}, options).expand(output.sizes());
  return drawn.to(output.scalar_type());
}

/// The dtype in which a sample of floats has an output of this one, where the sample is in doubles.
at::ScalarType narrowed(at::ScalarType dtype) {
  if (dtype == at::kComplexDouble) return at::kComplexFloat;
  return dtype == at::kDouble ? at::kFloat : dtype;
}
at::ScalarType unchanged(at::ScalarType dtype) { return dtype; }
using DrawnDtype = at::ScalarType (*)(at::ScalarType);

Tensors gradients(const Tensors& outputs, const Tensors& inputs, uint64_t seed, Cotangents kind,
                  DrawnDtype drawn) {
  Tensors ends = that_require_grad(outputs), starts = that_require_grad(inputs), cotangents;
  if (ends.empty() || starts.empty()) return {};
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  at::Tensor state = generator.get_state();
  at::manual_seed(seed + 1000);
  for (const at::Tensor& end : ends) cotangents.push_back(cotangent(end, kind, drawn(end.scalar_type())));
  generator.set_state(state);
  return torch::autograd::grad(ends, starts, cotangents, std::nullopt, false, true);
}

at::Tensor plain(const at::Tensor& tensor) {
  // has no memory to compare
  if (tensor._is_zerotensor()) return at::zeros(tensor.sizes(), tensor.options().requires_grad(false));
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

bool same_bytes(const at::Tensor& left, const at::Tensor& right) {
  at::Tensor a = plain(left), b = plain(right);
  return a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// What is left of terms that cancel each other is as large as their last bits, and they are of size 1.
double rounding_of(at::ScalarType dtype, double largest) {
  const bool is_double = dtype == at::kDouble || dtype == at::kComplexDouble;
  return is_double ? std::max(1e-12 * largest, 1e-14) : std::max(1e-5 * largest, 5e-7);
}

/// Equal but for rounding, where finite; else the same infinity, or no number either.
bool same_but_for_rounding(const at::Tensor& left, const at::Tensor& right, Match match) {
  at::Tensor a = plain(left), b = plain(right);
  if (a.numel() == 0 || !(a.is_floating_point() || a.is_complex())) return same_bytes(a, b);
  if (a.is_complex()) a = at::view_as_real(a), b = at::view_as_real(b);
  const at::Tensor finite = a.isfinite(), x = a.masked_fill(~finite, 0), y = b.masked_fill(~finite, 0);
  if (!at::equal(finite, b.isfinite()) ||
      !at::allclose(a.masked_fill(finite, 0), b.masked_fill(finite, 0), 0, 0, /*equal_nan=*/true))
    return false;
  return match == Match::Any ||
         (x - y).abs().max().item<double>() <= rounding_of(left.scalar_type(), x.abs().max().item<double>());
}

bool is_match(const at::Tensor& eager, const at::Tensor& compiled, Match match) {
  return match == Match::Bits ? same_bytes(eager, compiled) : same_but_for_rounding(eager, compiled, match);
}

/// What differs between two tensors, or nothing.
std::string difference(const at::Tensor& eager, const at::Tensor& compiled, Match match) {
  std::ostringstream text;
  if (eager.defined() != compiled.defined())
    text << (eager.defined() ? "undefined instead of defined" : "defined instead of undefined");
  else if (!eager.defined())
    return {};
  else if (eager.scalar_type() != compiled.scalar_type())
    text << compiled.scalar_type() << " instead of " << eager.scalar_type();
  else if (eager.sizes() != compiled.sizes())
    text << "sizes " << compiled.sizes() << " instead of " << eager.sizes();
  else if (!is_match(eager, compiled, match))
    text << "values\n" << compiled << "\ninstead of\n" << eager;
  return text.str();
}

std::string output_difference(const at::Tensor& eager, const at::Tensor& compiled, Match match) {
  std::ostringstream text;
  text << difference(eager, compiled, match);
  if (!text.str().empty() || !eager.defined()) return text.str();
  if (!tandem::same_strides(eager.sizes(), eager.strides(), compiled.strides()))
    text << "strides " << compiled.strides() << " instead of " << eager.strides();
  else if (eager.requires_grad() != compiled.requires_grad())
    text << (compiled.requires_grad() ? "requires grad" : "does not require grad");
  return text.str();
}

testing::AssertionResult failed(const char* what, size_t position, const std::string& how) {
  return testing::AssertionFailure() << what << " " << position << ": " << how;
}

testing::AssertionResult threw_alike(const char* when, const std::string& eager,
                                     const std::string& compiled) {
  if (eager.empty() == compiled.empty()) return testing::AssertionSuccess();
  if (eager.empty()) return testing::AssertionFailure() << "the compiled " << when << " throws: " << compiled;
  return testing::AssertionFailure() << "the compiled " << when << " does not throw as eager does: " << eager;
}

}  // namespace

namespace {

Outcome run_drawing(const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs,
                    uint64_t seed, Cotangents cotangents, DrawnDtype drawn) {
  Outcome outcome;
  at::manual_seed(seed);
  try {
    outcome.outputs = function(inputs);
  } catch (const std::exception& error) {
    outcome.forward_error = message(error);
    return outcome;
  }
  try {
    outcome.gradients = gradients(outcome.outputs, inputs, seed, cotangents, drawn);
  } catch (const std::exception& error) {
    outcome.backward_error = message(error);
    return outcome;
  }
  outcome.next_random = at::rand({1});
  return outcome;
}

at::Tensor as_double(const at::Tensor& input) {
  if (!input.defined() || !(input.is_floating_point() || input.is_complex())) return input;
  const at::ScalarType dtype = input.is_complex() ? at::kComplexDouble : at::kDouble;
  return input.detach().to(dtype).requires_grad_(input.requires_grad());
}

at::Tensor finite_part(const at::Tensor& tensor) {
  at::Tensor part = plain(tensor);
  if (part.is_complex()) part = at::view_as_real(part);
  return part.to(at::kDouble).nan_to_num(0, 0, 0);
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() ? (finite_part(a) - finite_part(b)).abs().max().item<double>() : 0;
}

testing::AssertionResult as_exact(const char* what, const Tensors& eager, const Tensors& compiled,
                                  const Tensors& exact) {
  for (size_t i = 0; i < eager.size(); ++i) {
    if (!eager[i].defined() || eager[i].numel() == 0) continue;
    const double bound =
        4 * distance(eager[i], exact[i]) +
        rounding_of(eager[i].scalar_type(), finite_part(exact[i]).abs().max().item<double>());
    if (distance(compiled[i], exact[i]) > bound)
      return failed(what, i, difference(eager[i], compiled[i], Match::Rounded));
  }
  return testing::AssertionSuccess();
}

}  // namespace

Outcome run(const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs, uint64_t seed,
            Cotangents cotangents) {
  return run_drawing(function, inputs, seed, cotangents, unchanged);
}

Outcome run_in_double(const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs,
                      uint64_t seed, Cotangents cotangents) {
  Tensors wide;
  for (const at::Tensor& input : inputs) wide.push_back(as_double(input));
  return run_drawing(function, wide, seed, cotangents, narrowed);
}

testing::AssertionResult as_exact(const Outcome& eager, const Outcome& compiled, const Outcome& exact) {
  if (auto alike = same(eager, compiled, Match::Any); !alike) return alike;
  if (auto near = as_exact("output", eager.outputs, compiled.outputs, exact.outputs); !near) return near;
  return as_exact("gradient", eager.gradients, compiled.gradients, exact.gradients);
}

testing::AssertionResult same(const Outcome& eager, const Outcome& compiled, Match match) {
  if (auto alike = threw_alike("call", eager.forward_error, compiled.forward_error); !alike) return alike;
  if (eager.outputs.size() != compiled.outputs.size())
    return failed("number of outputs", compiled.outputs.size(), "another in eager");
  for (size_t i = 0; i < eager.outputs.size(); ++i) {
    if (std::string how = output_difference(eager.outputs[i], compiled.outputs[i], match); !how.empty())
      return failed("output", i, how);
  }
  if (match != Match::Bits && !eager.backward_error.empty()) return testing::AssertionSuccess();
  if (auto alike = threw_alike("backward", eager.backward_error, compiled.backward_error); !alike)
    return alike;
  if (eager.gradients.size() != compiled.gradients.size())
    return failed("number of gradients", compiled.gradients.size(), "another in eager");
  for (size_t i = 0; i < eager.gradients.size(); ++i) {
    if (std::string how = difference(eager.gradients[i], compiled.gradients[i], match); !how.empty())
      return failed("gradient", i, how);
  }
  if (std::string how = difference(eager.next_random, compiled.next_random, Match::Bits); !how.empty())
    return failed("random number afterwards", 0, how);
  return testing::AssertionSuccess();
}

}  // namespace tandem::sweep
