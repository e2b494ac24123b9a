// Calls that draw random numbers: from the live generator, or from a state that the program has read and put
// back.
#include "ops/generator_state.h"
#include "trace/location.h"
#include "trace/recorded_call.h"
#include "trace/refuse.h"
#include "trace/saved_hooks.h"
#include "trace/seed_watch.h"

namespace tandem {

/// Attention draws numbers only where it drops something.
bool RecordedCall::drops_nothing() const {
  for (size_t a = 0; a < schema_.arguments().size(); ++a)
    if (schema_.arguments()[a].name() == "dropout_p")
      return stack_[first_ + a].isDouble() && stack_[first_ + a].toDouble() == 0;
  return false;
}

bool RecordedCall::has_own_generator() const {
  for (size_t a = 0; a < schema_.arguments().size(); ++a)
    if (const c10::IValue& given = stack_[first_ + a]; given.isGenerator() && given.toGenerator().defined())
      return true;
  return false;
}

/// Before each draw from the CPU's generator its state is read, since the program may have read it as well.
/// States of other generators that are put back are not seen, and hooks on saved tensors are how
/// checkpointing puts them back.
void RecordedCall::find_state() {
  const bool of_cpu = device_.is_cpu() && !has_own_generator();
  if (!of_cpu && saved_hooks_are_set())
    throw RunEagerly(full_name(op_) + " draws random numbers under hooks on saved tensors" + called_at());
  if (!tracer_.seeds_) return;
  const std::optional<uint64_t> label = tracer_.seeds_->label();
  const bool live = label && tracer_.draws_.is_live(*label);
  if (live && !of_cpu && !tracer_.seeds_->was_set()) return;
  const bool can_be_replayed = of_cpu && can_draw_from_state(op_, device_);
  if (label && !live && can_be_replayed) return draw_again(tracer_.draws_.state_of(*label));
  if (!live || tracer_.seeds_->was_set())
    throw RunEagerly(full_name(op_) +
                     " draws random numbers after the function seeds a generator, or sets its state" +
                     called_at());
  tracer_.seeds_->drew(can_be_replayed ? tracer_.add_state(device_) : Value{});
}

void RecordedCall::draw_again(Value state) {
  node_.state = state;
  node_.next_state = tracer_.add_value(make_meta({generator_state_bytes(device_)}, at::kByte), c10::kCPU);
  tracer_.seeds_->drew_again(node_.next_state);
}

/// No call of the program's: autograd does not know of it.
Value Tracer::add_state(c10::Device device) {
  const Value state = add_value(make_meta({generator_state_bytes(device)}, at::kByte), c10::kCPU);
  Node node{generator_state_operator(), {c10::IValue(device), c10::IValue()}, {state}};
  node.phase = phase_;
  if (record_locations_) node.location = user_location();
  graph_.add_node(std::move(node));
  if (differentiating_) return state;
  note_known();
  autograd_clock_.push_back(autograd_clock_.empty() ? 0 : autograd_clock_.back());
  modes_.push_back({c10::GradMode::is_enabled(), 0});
  return state;
}

}  // namespace tandem
