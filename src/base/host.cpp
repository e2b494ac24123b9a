#include "base/host.h"

namespace tandem {

std::function<void(const Error&)>& raise_in_host() {
  static auto* raise = new std::function<void(const Error&)>;
  return *raise;
}

std::function<void()>& drop_garbage() {
  static auto* drop = new std::function<void()>;
  return *drop;
}

std::function<at::Tensor(const c10::IValue&)>& symbol_in_host() {
  static auto* find = new std::function<at::Tensor(const c10::IValue&)>;
  return *find;
}

std::function<std::optional<HostCheckpoint>(torch::autograd::Node&)>& checkpoint_in_host() {
  static auto* find = new std::function<std::optional<HostCheckpoint>(torch::autograd::Node&)>;
  return *find;
}

std::function<bool()>& sets_checkpoint_in_host() {
  static auto* ask = new std::function<bool()>;
  return *ask;
}

}  // namespace tandem
