#include "trace/seed_watch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <chrono>
#include <mutex>

namespace tandem {
namespace {

/// The seed is what a generator says of itself; its numbers come from the rest of its state.
void set_seed_alone(at::Generator& generator, uint64_t seed) {
  auto* impl = at::check_generator<at::CPUGeneratorImpl>(generator);
  at::mt19937 engine = impl->engine();
  at::mt19937_data_pod data = engine.data();
  data.seed_ = seed;
  engine.set_data(data);
  impl->set_engine(engine);
}

/// The label that the CPU's generator carries; guarded by the generator's own mutex.
struct Label {
  size_t watchers = 0;
  uint64_t seed = 0;  ///< that it would say
  const uint64_t first =
      uint64_t(std::chrono::steady_clock::now().time_since_epoch().count()) * 0x9e3779b97f4a7c15u;
  uint64_t label = first;
  uint64_t sets = 0;  ///< how often it was wiped off

  static Label& shared() {
    static Label* label = new Label;
    return *label;
  }

  /// Labels are counted for those who ask; a seed of somebody else's is none.
  uint64_t number() const { return label - first; }
  std::optional<uint64_t> number_on(const at::Generator& generator) const {
    const uint64_t found = generator.current_seed() - first;
    return found <= number() ? std::optional(found) : std::nullopt;
  }

  void put_on(at::Generator& generator) { set_seed_alone(generator, ++label); }

  /// A state that was saved before the last look carries an older label.
  void look(at::Generator& generator) {
    if (generator.current_seed() != label) {
      ++sets;
      seed = generator.current_seed();
    }
    put_on(generator);
  }
};

}  // namespace

SeedWatch::SeedWatch(const Tensors& arguments, DrawLog& log) : log_(log) {
  {
    at::Generator cpu = at::detail::getDefaultCPUGenerator();
    std::lock_guard lock(cpu.mutex());
    Label& label = Label::shared();
    if (label.watchers++ == 0) {
      label.seed = cpu.current_seed();
      label.put_on(cpu);
    } else {
      label.look(cpu);
    }
    sets_before_ = label.sets;
    log_.begin(label.number());
    before_ = cpu.clone();
    set_seed_alone(before_, label.seed);
  }
  for (const at::Tensor& argument : arguments) {
    if (!argument.defined() || !argument.is_cuda() || device_.defined()) continue;
    device_ = at::globalContext().defaultGenerator(argument.device());
    std::lock_guard lock(device_.mutex());
    device_seed_ = device_.current_seed();
    device_offset_ = device_.get_offset();
  }
}

std::optional<uint64_t> SeedWatch::label() {
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(cpu.mutex());
  Label& label = Label::shared();
  const std::optional<uint64_t> found = label.number_on(cpu);
  if (found && log_.is_live(*found)) {
    // put back: to other watchers it shall be the live one again
    if (*found != label.number()) label.put_on(cpu);
    return label.sets == sets_before_ ? std::optional(label.number()) : std::nullopt;
  }
  if (found && label.sets == sets_before_ && log_.state_of(*found)) return found;
  label.look(cpu);
  return std::nullopt;
}

void SeedWatch::drew(Value state) {
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(cpu.mutex());
  Label::shared().put_on(cpu);
  log_.drew(state, Label::shared().number());
}

void SeedWatch::drew_again(Value next) {
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(cpu.mutex());
  Label& label = Label::shared();
  label.put_on(cpu);
  log_.drew_again(next, label.number());
  // other watchers must not take it for the live one
  ++label.label;
}

bool SeedWatch::was_set() {
  const std::optional<uint64_t> found = label();
  if (!found || !log_.is_live(*found)) return true;
  if (!device_.defined()) return false;
  std::lock_guard lock(device_.mutex());
  return device_.current_seed() != device_seed_ || device_.get_offset() < device_offset_;
}

SeedWatch::~SeedWatch() {
  {
    at::Generator cpu = at::detail::getDefaultCPUGenerator();
    std::lock_guard lock(cpu.mutex());
    Label& label = Label::shared();
    if (const auto found = label.number_on(cpu); found && log_.is_live(*found)) label.put_on(cpu);
    label.look(cpu);
    if (label.sets != sets_before_) {
      cpu.set_state(before_.get_state());
      label.seed = before_.current_seed();
      label.put_on(cpu);
    }
    if (--label.watchers == 0) set_seed_alone(cpu, label.seed);
  }
  if (!device_.defined()) return;
  std::lock_guard lock(device_.mutex());
  if (device_.current_seed() == device_seed_ && device_.get_offset() >= device_offset_) return;
  device_.set_current_seed(device_seed_);
  device_.set_offset(device_offset_);
}

}  // namespace tandem
