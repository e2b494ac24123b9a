/// What is found out about operators once and remembered.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tandem {

/// How many operators have gone with their libraries so far. The next operator may get the place of one that
/// has gone, so what is remembered by handles is void when this changes.
uint64_t operators_gone();

/// One thing known of each operator that was asked for, shared by all threads.
template <class Known>
class ByOperator {
 public:
  /// What `find(op)` gave when it was first asked; the reference stays valid, also after the operator has
  /// gone.
  template <class Find>
  Known& of(const c10::OperatorHandle& op, Find&& find) {
    {
      std::shared_lock lock(mutex_);
      if (gone_ == operators_gone())
        if (auto found = known_.find(op); found != known_.end()) return *found->second;
    }
    Known fresh = find(op);  // may ask for other operators
    std::unique_lock lock(mutex_);
    if (const uint64_t now = operators_gone(); gone_ != now) {
      known_.clear();
      gone_ = now;
    }
    auto [place, is_new] = known_.try_emplace(op, nullptr);
    if (is_new) place->second = &all_.emplace_back(std::move(fresh));
    return *place->second;
  }

  /// As if nothing had been asked yet.
  void forget() {
    std::unique_lock lock(mutex_);
    known_.clear();
  }

 private:
  std::shared_mutex mutex_;
  uint64_t gone_ = 0;
  std::unordered_map<c10::OperatorHandle, Known*> known_;
  std::deque<Known> all_;
};

}  // namespace tandem
