/// What a function finds around it besides what it is given, for who calls it again later.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace tandem {

/// The live generators' states and autocast, as they are when it is made: of the CPU, and of the devices of
/// these tensors.
class Surroundings {
 public:
  explicit Surroundings(const std::vector<at::Tensor>& tensors);

  void read();
  void set() const;

 private:
  struct OfDevice {
    c10::Device device;
    at::Tensor state = {};
    bool autocasts = false;
    at::ScalarType dtype = at::kFloat;
  };

  std::vector<OfDevice> devices_;
  bool caches_casts_ = true;
};

/// Brings them about while it lives, and behind it what was there before.
class SurroundingsAgain {
 public:
  explicit SurroundingsAgain(const Surroundings& wanted);
  ~SurroundingsAgain();
  SurroundingsAgain(const SurroundingsAgain&) = delete;
  SurroundingsAgain& operator=(const SurroundingsAgain&) = delete;

 private:
  Surroundings before_;
};

}  // namespace tandem
