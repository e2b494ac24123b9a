/// The states of random number generators.
#pragma once

#include <ATen/core/Generator.h>

#include <mutex>
#include <utility>
#include <vector>

namespace tandem {

/// Puts generators back to where they were when it was given them.
class GeneratorsKept {
 public:
  GeneratorsKept() = default;
  ~GeneratorsKept() {
    for (auto& [generator, state] : kept_) {
      std::lock_guard lock(generator.mutex());
      generator.set_state(state);
    }
  }
  GeneratorsKept(const GeneratorsKept&) = delete;
  GeneratorsKept& operator=(const GeneratorsKept&) = delete;

  void keep(at::Generator generator) {
    std::lock_guard lock(generator.mutex());
    at::Tensor state = generator.get_state();
    kept_.emplace_back(std::move(generator), std::move(state));
  }

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> kept_;
};

}  // namespace tandem
