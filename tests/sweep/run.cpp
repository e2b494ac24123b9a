#include "run.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>

#include "fuzz/moves.h"
#include "fuzz/tolerance.h"
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

at::Tensor cotangent(const at::Tensor& output, Cotangents kind) {
  return kind == Cotangents::Dense ? at::randn_like(output.detach())
                                   : at::randn({}, output.options()).expand(output.sizes());
}

Tensors gradients(const Tensors& outputs, const Tensors& inputs, uint64_t seed, Cotangents kind) {
  Tensors ends = that_require_grad(outputs), starts = that_require_grad(inputs), cotangents;
  if (ends.empty() || starts.empty()) return {};
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  at::Tensor state = generator.get_state();
  at::manual_seed(seed + 1000);
  for (const at::Tensor& end : ends) cotangents.push_back(cotangent(end, kind));
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

/// What differs between two tensors, or nothing.
std::string difference(const at::Tensor& eager, const at::Tensor& compiled, const at::Tensor& moves = {}) {
  std::ostringstream text;
  if (eager.defined() != compiled.defined())
    text << (eager.defined() ? "undefined instead of defined" : "defined instead of undefined");
  else if (!eager.defined())
    return {};
  else if (eager.scalar_type() != compiled.scalar_type())
    text << compiled.scalar_type() << " instead of " << eager.scalar_type();
  else if (eager.sizes() != compiled.sizes())
    text << "sizes " << compiled.sizes() << " instead of " << eager.sizes();
  else if (!same_bytes(eager, compiled) &&
           !(moves.defined() && fuzz::is_within(plain(eager), plain(compiled), moves)))
    text << "values\n" << compiled << "\ninstead of\n" << eager;
  return text.str();
}

std::string output_difference(const at::Tensor& eager, const at::Tensor& compiled, const at::Tensor& moves) {
  std::ostringstream text;
  text << difference(eager, compiled, moves);
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

Tensors both(const Outcome& outcome) {
  Tensors all = outcome.outputs;
  all.insert(all.end(), outcome.gradients.begin(), outcome.gradients.end());
  return all;
}

}  // namespace

Outcome run(const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs, uint64_t seed,
            Cotangents cotangents) {
  Outcome outcome;
  at::manual_seed(seed);
  try {
    outcome.outputs = function(inputs);
  } catch (const std::exception& error) {
    outcome.forward_error = message(error);
    return outcome;
  }
  try {
    outcome.gradients = gradients(outcome.outputs, inputs, seed, cotangents);
  } catch (const std::exception& error) {
    outcome.backward_error = message(error);
    return outcome;
  }
  outcome.next_random = at::rand({1});
  return outcome;
}

void find_moves(Outcome& eager, const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs,
                uint64_t seed, Cotangents cotangents) {
  eager.moves = fuzz::moves_of(both(eager), [&] { return both(run(function, inputs, seed, cotangents)); });
}

testing::AssertionResult same(const Outcome& eager, const Outcome& compiled, Match match) {
  if (auto alike = threw_alike("call", eager.forward_error, compiled.forward_error); !alike) return alike;
  const auto moves = [&](size_t i) { return eager.moves.empty() ? at::Tensor() : eager.moves[i]; };
  if (eager.outputs.size() != compiled.outputs.size())
    return failed("number of outputs", compiled.outputs.size(), "another in eager");
  for (size_t i = 0; i < eager.outputs.size(); ++i) {
    if (std::string how = output_difference(eager.outputs[i], compiled.outputs[i], moves(i)); !how.empty())
      return failed("output", i, how);
  }
  if (match != Match::Bits && !eager.backward_error.empty()) return testing::AssertionSuccess();
  if (auto alike = threw_alike("backward", eager.backward_error, compiled.backward_error); !alike)
    return alike;
  if (eager.gradients.size() != compiled.gradients.size())
    return failed("number of gradients", compiled.gradients.size(), "another in eager");
  for (size_t i = 0; i < eager.gradients.size(); ++i) {
    const at::Tensor moved = moves(eager.outputs.size() + i);
    if (std::string how = difference(eager.gradients[i], compiled.gradients[i], moved); !how.empty())
      return failed("gradient", i, how);
  }
  if (std::string how = difference(eager.next_random, compiled.next_random); !how.empty())
    return failed("random number afterwards", 0, how);
  return testing::AssertionSuccess();
}

}  // namespace tandem::sweep
