/// What autograd knows while a record is followed.
#pragma once

#include <set>

#include "aot/traced.h"

namespace tandem {

/// The values that autograd has a history of, or gathers gradients in, as far as the fakes showed it.
class KnownValues {
 public:
  explicit KnownValues(const Tracer& tracer) : next_(tracer.autograd_events().begin()), tracer_(tracer) {
    for (const TracedInput& input : tracer.inputs())
      if (input.required_grad) known_.insert(input.value.id);
  }

  /// All that happened before node `n` of the program; `detach` is called with what it detached.
  template <class Detach>
  void go_to(size_t n, const Detach& detach) {
    for (; next_ != tracer_.autograd_events().end() && next_->before <= n; ++next_) {
      if (next_->kind == AutogradEvent::Kind::Known) {
        known_.insert(next_->value.id);
      } else {
        known_.erase(next_->value.id);
        detach(next_->value);
      }
    }
  }
  void go_to(size_t n) {
    go_to(n, [](Value) {});
  }

  void add(Value value) { known_.insert(value.id); }
  bool has(Value value) const { return known_.count(value.id) > 0; }

 private:
  std::set<int32_t> known_;
  std::vector<AutogradEvent>::const_iterator next_;
  const Tracer& tracer_;
};

/// Whether something that autograd knows is written behind its back, by `data()`, and then read as what it
/// knows.
bool writes_behind_autograd(const Traced& traced);

}  // namespace tandem
