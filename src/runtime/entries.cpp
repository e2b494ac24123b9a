#include "runtime/entries.h"

#include "base/counters.h"
#include "runtime/novelty.h"

namespace tandem {
namespace {

bool is_unpaid(const Entry& entry) {
  return entry.eager_reason.empty() && entry.calls() < Novelty::pays_after;
}

}  // namespace

FoundEntry Entries::find(const Tensors& arguments, const Watched& watched, const Modes& modes) {
  std::shared_lock lock(mutex_);
  for (const auto& entry : entries_) {
    auto reached = entry->reach(arguments);
    if (!reached || !entry->signature.matches(arguments, *reached, watched, modes)) continue;
    if (entry != entries_.front()) promote_.store(true, std::memory_order_relaxed);
    auto found = entry;
    lock.unlock();
    if (promote_.exchange(false, std::memory_order_relaxed)) move_to_front(found);
    return {std::move(found), std::move(*reached)};
  }
  return {};
}

void Entries::move_to_front(const std::shared_ptr<Entry>& entry) {
  std::unique_lock lock(mutex_);
  auto at = std::find(entries_.begin(), entries_.end(), entry);
  if (at != entries_.end()) std::rotate(entries_.begin(), at, at + 1);
}

void Entries::accept_gradients(Entry& entry, const Tensors& reached, const Watched& watched) {
  std::unique_lock lock(mutex_);
  entry.signature.accept_gradients(reached, watched);
}

std::vector<std::shared_ptr<Entry>> Entries::all() const {
  std::shared_lock lock(mutex_);
  return entries_;
}

std::shared_ptr<Entry> Entries::last() const {
  std::shared_lock lock(mutex_);
  return entries_.empty() ? nullptr : entries_.front();
}

Tensors Entries::leaves() const {
  Tensors leaves;
  std::shared_lock lock(mutex_);
  for (const auto& entry : entries_) entry->add_leaves(leaves);
  return leaves;
}

size_t Entries::count_unpaid() const {
  std::shared_lock lock(mutex_);
  const size_t unpaid = size_t(
      std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) { return is_unpaid(*entry); }));
  return unpaid + (unpaid < entries_.size() ? lost_ / 2 : lost_);
}

bool Entries::keep(std::shared_ptr<Entry> entry, const std::shared_ptr<Entry>& replaced) {
  std::unique_lock lock(mutex_);
  std::erase_if(entries_, [&](const auto& old) {
    const bool dies = old == replaced || !old->captures_are_alive();
    lost_ += dies && is_unpaid(*old);
    return dies;
  });
  entries_.insert(entries_.begin(), std::move(entry));
  const bool too_many = are_too_many();
  while (are_too_many()) {
    entries_.pop_back();
    count("signature_evicted");
  }
  return too_many;
}

bool Entries::are_too_many() const {
  size_t bytes = 0;
  for (const auto& entry : entries_) bytes += entry->approximate_bytes();
  return entries_.size() > most_ || (bytes > most_bytes && entries_.size() > 1);
}

void Entries::clear() {
  std::unique_lock lock(mutex_);
  entries_.clear();
}

}  // namespace tandem
