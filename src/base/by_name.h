/// What users add to the library under names.
#pragma once

#include <tandem/error.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tandem {

/// Any number of threads may use it at once.
template <class Thing>
class ByName {
 public:
  /// `kind` is what one of them is called: register_KIND adds one.
  ByName(std::string kind, std::map<std::string, Thing> known)
      : kind_(std::move(kind)), known_(std::move(known)) {}

  /// Adds one, or replaces the one with this name.
  void add(const std::string& name, Thing thing) {
    std::lock_guard lock(mutex_);
    known_[name] = std::move(thing);
  }

  /// The one with this name; throws Error that lists the known ones.
  Thing find(const std::string& name) const {
    std::lock_guard lock(mutex_);
    if (auto found = known_.find(name); found != known_.end()) return found->second;
    std::string names;
    for (const auto& [other, thing] : known_) names += (names.empty() ? "" : ", ") + other;
    throw Error("there is no " + kind_ + " named '" + name + "'; choose one of " + names +
                ", or add yours with register_" + kind_);
  }

  std::map<std::string, Thing> all() const {
    std::lock_guard lock(mutex_);
    return known_;
  }

 private:
  const std::string kind_;
  mutable std::mutex mutex_;
  std::map<std::string, Thing> known_;
};

}  // namespace tandem
