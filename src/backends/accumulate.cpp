// Additions into the memory of an operand.
#include "backends/calls.h"

namespace tandem {
namespace {

class AccumulatingCall final : public Call {
 public:
  AccumulatingCall(const CallSite& site, size_t into)
      : target_(std::get<TensorSlot>(site.arguments[into])),
        other_(std::get<TensorSlot>(site.arguments[1 - into])),
        alpha_(std::get<c10::IValue>(site.arguments[2]).toScalar()),
        into_(into),
        result_(std::get<int32_t>(site.results[0])) {}

  void run(at::Tensor* registers, torch::jit::Stack&) const override {
    at::Tensor target = target_.take(registers);
    at::Tensor other = other_.take(registers);
    // Autograd's zeros without memory cannot be written.
    bool ours = target.use_count() == 1 && !target._is_zerotensor() && target.storage().use_count() == 1;
    if (ours)
      target.add_(other, alpha_);
    else
      target = into_ == 0 ? at::add(target, other, alpha_) : at::add(other, target, alpha_);
    if (result_ >= 0) registers[result_] = std::move(target);
  }

 private:
  TensorSlot target_, other_;
  at::Scalar alpha_;
  size_t into_;
  int32_t result_;
};

}  // namespace

std::unique_ptr<Call> make_accumulating_call(const CallSite& site, size_t into) {
  return std::make_unique<AccumulatingCall>(site, into);
}

}  // namespace tandem
