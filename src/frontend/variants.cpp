#include <tandem/detail/variants.h>

#include "base/counters.h"
#include "base/log.h"

namespace tandem::detail {

std::shared_ptr<Function> Variants::find_locked(const std::string& rest) {
  auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.rest == rest; });
  if (found == entries_.end()) return nullptr;
  if (found != entries_.begin()) entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().function;
}

std::shared_ptr<Function> Variants::find(const std::string& rest) {
  std::lock_guard lock(mutex_);
  return find_locked(rest);
}

std::shared_ptr<Function> Variants::add(const std::string& rest, Program program,
                                        std::vector<std::string> argument_names) {
  std::lock_guard lock(mutex_);
  if (auto function = find_locked(rest)) return function;
  entries_.push_front(
      {rest, make_function(std::move(program), options_, std::move(argument_names), name_capture_)});
  if (entries_.size() > std::max<size_t>(options_.max_signatures, 1)) {
    entries_.pop_back();
    count("signature_evicted");
    if (!std::exchange(warned_, true))
      warn((options_.name.empty() ? "a compiled function" : options_.name) + " was called with more than " +
           std::to_string(options_.max_signatures) +
           " different sets of non-tensor arguments, each of which is compiled anew; pass what keeps "
           "changing as a tensor, or raise Options::max_signatures.");
  }
  return entries_.front().function;
}

}  // namespace tandem::detail
