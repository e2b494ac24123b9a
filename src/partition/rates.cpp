#include "partition/rates.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace tandem {
namespace {

constexpr Rates cpu{2e-6, 10e9, 2e9, 60e9, 60e9};
constexpr Rates accelerator{4e-6, 2.5e12, 5e12, 40e12, 400e12};

constexpr double Rates::* fields[] = {&Rates::call_seconds, &Rates::bytes, &Rates::elements, &Rates::flops,
                                      &Rates::narrow_flops};
constexpr int most_quarters = 400;  ///< beyond what any machine does

}  // namespace

const Rates& built_in_rates(c10::Device device) { return device.is_cpu() ? cpu : accelerator; }

std::string to_words(const Rates& rates) {
  std::string words;
  for (auto field : fields)
    words += (words.empty() ? "" : " ") + std::to_string(std::lround(std::log2(rates.*field) * 4));
  return words;
}

std::optional<Rates> rates_of_words(std::string_view words) {
  Rates rates{};
  for (auto field : fields) {
    int quarters = 0;
    const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), quarters);
    if (error != std::errc() || std::abs(quarters) > most_quarters) return std::nullopt;
    rates.*field = std::exp2(quarters / 4.0);
    words.remove_prefix(size_t(end - words.data()));
    if (words.starts_with(' ') && field != std::end(fields)[-1]) words.remove_prefix(1);
  }
  return words.empty() ? std::optional(rates) : std::nullopt;
}

std::string describe(const Rates& rates) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%.3g us a call, %.3g GB/s, %.3g G additions/s, %.3g GFLOP/s, %.3g GFLOP/s of 16 bits",
                rates.call_seconds * 1e6, rates.bytes / 1e9, rates.elements / 1e9, rates.flops / 1e9,
                rates.narrow_flops / 1e9);
  return text;
}

}  // namespace tandem
