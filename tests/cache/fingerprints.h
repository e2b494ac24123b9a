/// Fingerprints of small functions.
#pragma once

#include "key/fingerprint.h"
#include "support/compare.h"

namespace tandem::test {

using Function = std::function<Tensors(const Tensors&)>;

inline at::Tensor ones_leaf(at::IntArrayRef sizes) { return torch::ones(sizes).requires_grad_(); }

inline Traced traced(const Function& function, const Tensors& inputs, bool record_locations = false) {
  return trace_forward([&](const Tensors& fakes) { return detail::Returned{function(fakes), nullptr}; },
                       inputs, {.record_locations = record_locations});
}

inline Fingerprint fingerprint_of(const Function& function, const Tensors& inputs,
                                  const Options& options = {}) {
  const Traced trace = traced(function, inputs, options.record_locations);
  Fingerprint print = fingerprint(trace, plan_calls(trace, {}, options.keep_input_mutations), options);
  print.components = readable(std::move(print.components), trace.tracer->graph());
  return print;
}

inline std::string key_of(const Function& function, const Tensors& inputs, const Options& options = {}) {
  return fingerprint_of(function, inputs, options).key;
}

inline const cache::Component& component(const Fingerprint& print, const std::string& name) {
  for (const cache::Component& one : print.components)
    if (one.name == name) return one;
  throw std::out_of_range("no component " + name);
}

/// Names of the components that differ.
inline std::vector<std::string> differing(const Fingerprint& a, const Fingerprint& b) {
  std::vector<std::string> names;
  for (const cache::Component& one : a.components)
    if (component(b, one.name).hash != one.hash) names.push_back(one.name);
  return names;
}

}  // namespace tandem::test
