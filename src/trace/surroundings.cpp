#include "trace/surroundings.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <mutex>

namespace tandem {

Surroundings::Surroundings(const std::vector<at::Tensor>& tensors) {
  devices_.push_back({c10::kCPU});
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || !tensor.device().is_cuda()) continue;
    auto is_its = [&](const OfDevice& one) { return one.device == tensor.device(); };
    if (std::none_of(devices_.begin(), devices_.end(), is_its)) devices_.push_back({tensor.device()});
  }
  read();
}

void Surroundings::read() {
  for (OfDevice& one : devices_) {
    at::Generator generator = at::globalContext().defaultGenerator(one.device);
    std::lock_guard lock(generator.mutex());
    one.state = generator.get_state();
    one.autocasts = at::autocast::is_autocast_enabled(one.device.type());
    one.dtype = at::autocast::get_autocast_dtype(one.device.type());
  }
  caches_casts_ = at::autocast::is_autocast_cache_enabled();
}

void Surroundings::set() const {
  for (const OfDevice& one : devices_) {
    at::Generator generator = at::globalContext().defaultGenerator(one.device);
    std::lock_guard lock(generator.mutex());
    generator.set_state(one.state);
    at::autocast::set_autocast_enabled(one.device.type(), one.autocasts);
    at::autocast::set_autocast_dtype(one.device.type(), one.dtype);
  }
  at::autocast::set_autocast_cache_enabled(caches_casts_);
}

SurroundingsAgain::SurroundingsAgain(const Surroundings& wanted) : before_(wanted) {
  before_.read();
  wanted.set();
  at::autocast::increment_nesting();
}

SurroundingsAgain::~SurroundingsAgain() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  before_.set();
}

}  // namespace tandem
