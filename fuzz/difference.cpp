#include "fuzz/observe.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace tandem::fuzz {

namespace {

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// All NaNs are one: which bits a NaN has depends on the order of the operands of a commutative instruction.
bool same_elements(const at::Tensor& a, const at::Tensor& b) {
  if (same_bytes(a, b)) return true;
  const at::Tensor both = at::isnan(a).logical_and(at::isnan(b));
  return same_bytes(a.masked_fill(both, 0), b.masked_fill(both, 0));
}

double tolerance(at::ScalarType dtype) {
  return dtype == at::kDouble ? 1e-10 : dtype == at::kFloat ? 1e-5 : 1e-2;
}

/// Within the tolerance of the largest element, and not finite in the same places and the same way.
bool close(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor finite = at::isfinite(a), strange = finite.logical_not();
  if (!at::equal(finite, at::isfinite(b)) ||
      !same_elements(a.masked_fill(finite, 0), b.masked_fill(finite, 0)))
    return false;
  const at::Tensor x = a.masked_fill(strange, 0), y = b.masked_fill(strange, 0);
  const double largest = x.abs().max().item<double>();
  return (x - y).abs().max().item<double>() <=
         tolerance(a.scalar_type()) * (a.scalar_type() == at::kDouble ? std::max(1.0, largest) : largest);
}

/// Gradients of higher order go through a call's nodes one by one, and are added up outside: docs/fuzz.md
/// says how often eager's moves are exceeded.
bool within_moves(const Seen& want, const at::Tensor& got) {
  constexpr double most = 8;
  const at::Tensor finite = at::isfinite(want.values), strange = finite.logical_not();
  if (!want.moves.defined() || !at::equal(finite, at::isfinite(got)) ||
      !same_elements(want.values.masked_fill(finite, 0), got.masked_fill(finite, 0)))
    return false;
  return ((got - want.values).abs() <= want.moves * most).logical_or(strange).all().item<bool>();
}

bool is_near_enough(const Seen& want, const Seen& got) {
  return (want.exact == Exactness::Rounded && close(want.values, got.values)) ||
         (want.exact == Exactness::Moved && within_moves(want, got.values)) ||
         (want.exact == Exactness::Tolerated && want.moves.defined() &&
          is_within(want.values, got.values, want.moves));
}

std::string shown(const Seen& seen) {
  std::ostringstream out;
  out << seen.facts << " " << seen.strides << seen.words;
  if (seen.values.defined()) out << "\n" << at::Tensor(seen.values).view({-1});
  return out.str();
}

bool is_zero(const Seen& seen) { return seen.values.defined() && !seen.values.any().item<bool>(); }

/// The entry that says whether there are gradients; those of them follow.
bool begins_order(const Seen& seen) { return seen.facts == has_gradients || seen.facts == refused_gradients; }

/// The entries of the orders above entry `k`, which is of a gradient.
std::pair<size_t, size_t> orders_above(const Observation& observation, size_t k) {
  const auto& seen = observation.seen;
  auto is_higher = [](const Seen& entry) {
    return entry.kind.starts_with("gradient of order") && entry.kind != "gradient of order 1";
  };
  const auto first = std::find_if(seen.begin() + int64_t(k), seen.end(), [&](const Seen& entry) {
    return begins_order(entry) || entry.kind != seen[k].kind;
  });
  return {first - seen.begin(), std::find_if_not(first, seen.end(), is_higher) - seen.begin()};
}

/// The entries of the gradients that entry `k` says are there, and of the orders above.
std::pair<size_t, size_t> gradients_behind(const Observation& observation, size_t k) {
  const auto& seen = observation.seen;
  size_t first = k + 1, last = first;
  while (last < seen.size() && seen[last].kind == seen[k].kind && !begins_order(seen[last])) ++last;
  return {first,
          seen[k].kind.starts_with("gradient of order") ? orders_above(observation, k + 1).second : last};
}

bool are_zero_above(const Observation& observation, size_t k) {
  const auto [first, last] = orders_above(observation, k);
  return std::all_of(observation.seen.begin() + int64_t(first), observation.seen.begin() + int64_t(last),
                     [](const Seen& entry) {
                       return entry.values.defined() ? is_zero(entry) : entry.facts != refused_gradients;
                     });
}

/// Entry `k` is one gradient to both, but a constant to one of them: it is zero, or all gradients of it are.
bool is_constant_to_one(const Observation& want, const Observation& got, size_t k) {
  const Seen &a = want.seen[k], &b = got.seen[k];
  if (a.facts == b.facts || !a.kind.starts_with("gradient of order") || !a.values.defined() ||
      !b.values.defined())
    return false;
  if (a.values.sizes() != b.values.sizes() || a.values.dtype() != b.values.dtype()) return false;
  return (is_zero(a) && is_zero(b)) ||
         (same_elements(a.values, b.values) && are_zero_above(want, k) && are_zero_above(got, k));
}

std::optional<Mismatch> difference(const Seen& want, const Seen& got, std::set<std::string>& concessions) {
  auto differs = [&](const std::string& how) {
    return Mismatch{want.kind + how, want.where + "\neager:    " + shown(want) + "\ncompiled: " + shown(got),
                    ""};
  };
  if (got.facts != want.facts)
    return differs(want.values.defined() ? ": another kind of tensor" : ": otherwise");
  if (!want.values.defined()) return std::nullopt;
  if (got.layout != want.layout && want.layout_matters) return differs(": other strides");
  if (got.layout != want.layout)
    concessions.insert(
        "strides of gradients that meet outside, under create_graph, after writes to outputs, or of written "
        "views");
  else if (got.strides != want.strides)
    concessions.insert("strides that address nothing");
  if (want.values.numel() == 0 || same_elements(want.values, got.values)) return std::nullopt;
  const bool same_numbers = want.exact != Exactness::Bits && want.exact != Exactness::Tolerated &&
                            same_elements(want.values + 0, got.values + 0);
  if (same_numbers) concessions.insert("the sign of zero where gradients meet outside");
  if (same_numbers) return std::nullopt;
  if (!is_near_enough(want, got)) return differs(": other values");
  if (want.exact == Exactness::Tolerated) return std::nullopt;
  if (want.kind.starts_with("gradient of order")) concessions.insert("higher orders are rounded otherwise");
  return std::nullopt;
}

bool refuses(const Observation& observation, const std::string& kind) {
  return std::any_of(observation.seen.begin(), observation.seen.end(),
                     [&](const Seen& seen) { return seen.kind == kind && seen.facts == refused_gradients; });
}

/// Without the higher orders of entry `k`: of gradients of which one is a constant to eager or to compiled
/// code, not both have an order above.
Observation without_orders_above(Observation observation, size_t k) {
  if (k >= observation.seen.size()) return observation;
  const auto [first, last] = orders_above(observation, k);
  observation.seen.erase(observation.seen.begin() + int64_t(first), observation.seen.begin() + int64_t(last));
  return observation;
}

/// Entry `k` says that there are gradients, and none of them, nor of the orders above, has an element.
bool has_no_elements(const Observation& observation, size_t k) {
  const auto [first, last] = gradients_behind(observation, k);
  return std::all_of(observation.seen.begin() + int64_t(first), observation.seen.begin() + int64_t(last),
                     [](const Seen& entry) { return !entry.values.defined() || entry.values.numel() == 0; });
}

/// As if entry `k`, which says that there are gradients, said that they are refused.
Observation without_gradients(Observation observation, size_t k) {
  const auto [first, last] = gradients_behind(observation, k);
  observation.seen[k].facts = refused_gradients;
  observation.seen.erase(observation.seen.begin() + int64_t(first), observation.seen.begin() + int64_t(last));
  return observation;
}

/// Of entries of gradients whether they may be constants, decided while the orders above are all there.
using Judged = std::map<size_t, bool>;

void judge_order(const Observation& want, const Observation& got, size_t k, Judged& judged) {
  for (size_t j = k;
       j < std::min(want.seen.size(), got.seen.size()) && want.seen[j].kind == want.seen[k].kind &&
       !begins_order(want.seen[j]) && !begins_order(got.seen[j]);
       ++j)
    judged.emplace(j, is_constant_to_one(want, got, j));
}

std::optional<Mismatch> difference(const Expected& expected, const Observation& got,
                                   std::set<std::string>& concessions, Judged judged) {
  const Observation* want = &expected.eager;
  for (size_t k = 0; k < want->seen.size(); ++k) {
    if (k >= got.seen.size() || got.seen[k].kind != want->seen[k].kind)
      return Mismatch{want->seen[k].kind + " is missing", want->seen[k].where, ""};
    if (judged.contains(k) ? judged[k] : is_constant_to_one(*want, got, k)) {
      judge_order(*want, got, k, judged);
      Expected lower{without_orders_above(expected.eager, k)};
      if (expected.copies) lower.copies = without_orders_above(*expected.copies, k);
      const Observation lower_got = without_orders_above(got, k);
      const bool lowers_copies = expected.copies && lower.copies->seen.size() != expected.copies->seen.size();
      if (lower.eager.seen.size() != expected.eager.seen.size() || lowers_copies ||
          lower_got.seen.size() != got.seen.size())
        return difference(lower, lower_got, concessions, judged);
      concessions.insert("gradients that are constant under create_graph");
      continue;
    }
    const bool eager_refuses = want->seen[k].facts == refused_gradients;
    // Eager also keeps what its backward does not read. A function that answers must answer as if nothing
    // that is read had been written.
    if (eager_refuses && got.seen[k].facts != refused_gradients && expected.copies &&
        expected.copies->seen.size() > k) {
      concessions.insert(want->seen[k].kind == gradient_after_writes
                             ? "eager refuses gradients after writes to outputs"
                             : "eager refuses gradients after a write that changes no value");
      want = &*expected.copies;
    }
    const bool copies_refuse = !expected.copies || (expected.copies->seen.size() > k &&
                                                    expected.copies->seen[k].facts == refused_gradients);
    if (eager_refuses && copies_refuse && got.seen[k].facts == has_gradients && has_no_elements(got, k)) {
      concessions.insert("eager's error lies in gradients without elements");
      return difference(expected, without_gradients(got, k), concessions, judged);
    }
    // Where this one refuses as well, eager's other answer is as good.
    if (want != &expected.eager && got.seen[k].facts == refused_gradients &&
        refuses(expected.eager, got.seen[k].kind))
      return std::nullopt;
    if (auto found = difference(want->seen[k], got.seen[k], concessions)) return found;
  }
  if (got.seen.size() > want->seen.size())
    return Mismatch{got.seen[want->seen.size()].kind + " is seen in compiled code alone",
                    got.seen[want->seen.size()].where, ""};
  return std::nullopt;
}

}  // namespace

std::optional<Mismatch> difference(const Expected& expected, const Observation& got,
                                   std::set<std::string>& concessions) {
  if (expected.eager.wavers || (expected.copies && expected.copies->wavers)) {
    concessions.insert("eager itself does otherwise when last bits change");
    return std::nullopt;
  }
  return difference(expected, got, concessions, {});
}

}  // namespace tandem::fuzz
