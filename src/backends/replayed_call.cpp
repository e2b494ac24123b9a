#include "backends/calls.h"
#include "ops/generator_state.h"

namespace tandem {
namespace {

class ReplayedCall final : public Call {
 public:
  ReplayedCall(std::unique_ptr<Call> call, const CallSite& site)
      : call_(std::move(call)), device_(*site.draws_on), state_(site.state), next_state_(site.next_state) {}

  void run(at::Tensor* registers, torch::jit::Stack& stack) const override {
    DrawsFromState draws(device_, state_.take(registers));
    call_->run(registers, stack);
    if (next_state_ >= 0) registers[next_state_] = draws.state();
  }

 private:
  const std::unique_ptr<Call> call_;
  const c10::Device device_;
  const TensorSlot state_;
  const int32_t next_state_;
};

}  // namespace

std::unique_ptr<Call> make_replayed_call(std::unique_ptr<Call> call, const CallSite& site) {
  return std::make_unique<ReplayedCall>(std::move(call), site);
}

}  // namespace tandem
