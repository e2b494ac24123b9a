#include "compile/machine_costs.h"

#include <ATen/Parallel.h>
#include <tandem/error.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "base/log.h"
#include "base/machine.h"
#include "base/modes.h"
#include "base/sha256.h"
#include "cache/notes.h"
#include "cache/settings.h"

namespace tandem {
namespace {

bool is_to_be_measured() {
  const char* variable = std::getenv("TANDEM_COST_MODEL");
  const std::string word = variable ? variable : "";
  if (word == "builtin") return false;
  static const bool told =
      word.empty() || word == "measured" ||
      (warn("TANDEM_COST_MODEL=" + word + " means nothing; builtin asks for what no machine measured"), true);
  static_cast<void>(told);
  return true;
}

/// Everything that the rates of a device depend on.
std::string conditions_of(c10::Device device) {
  return "rates 1\n" + cpu_identity() + (device.is_cpu() ? "" : gpu_identity(device.index())) + "threads " +
         std::to_string(at::get_num_threads()) + "\narithmetic " +
         std::to_string(Modes::now(true).arithmetic.value_or(0)) + '\n' + libtorch_identity();
}

std::optional<Rates> noted(const CacheOptions& settled, const std::string& name) {
  const std::optional<std::string> words = cache::read_note(settled, name);
  return words ? rates_of_words(*words) : std::nullopt;
}

/// Whoever compiles says what is wrong with a cache that cannot be used.
CacheOptions settled_or_off(const CacheOptions& options) {
  try {
    return cache::settle(options);
  } catch (const Error&) {
    return {.enabled = false};
  }
}

Rates noted_or_measured(c10::Device device, const CacheOptions& settled, const std::string& name) {
  if (const auto earlier = noted(settled, name)) return *earlier;
  const Rates measured = measure_rates(device);
  log("compile", device.str() + " was measured: " + describe(measured));
  // All of several processes that began together go by the first that is done.
  if (const auto other = noted(settled, name)) return *other;
  cache::write_note(settled, name, to_words(measured));
  return measured;
}

}  // namespace

MachineRates machine_rates(c10::Device device, const CacheOptions& cache) {
  const bool is_known = device.is_cpu() || device.is_cuda();
  if (!is_known || !is_to_be_measured()) return {built_in_rates(device), false};
  const CacheOptions settled = settled_or_off(cache);
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<std::string, std::string>, MachineRates>;
  const std::string name = sha256(conditions_of(device)),
                    folder = settled.enabled && settled.local ? settled.directory.string() : "";
  std::lock_guard lock(mutex);
  if (const auto found = known.find({folder, name}); found != known.end()) return found->second;
  MachineRates rates{built_in_rates(device), false};
  try {
    rates = {noted_or_measured(device, settled, name), true};
  } catch (const std::exception& error) {
    log("compile", device.str() + " could not be measured: " + error.what());
  }
  known.emplace(std::pair(folder, name), rates);
  return rates;
}

void take_machine_costs(Options& options, const Graph& trace) {
  const bool asks_for_times = options.memory_budget < 1 || options.memory_budget_bytes;
  if (options.cost_model || !asks_for_times || !is_to_be_measured()) return;
  DeviceRates measured;
  for (size_t id = 0; id < trace.value_count(); ++id) {
    const c10::Device device = trace.meta(Value{int32_t(id)}).device;
    if (std::none_of(measured.begin(), measured.end(), [&](const auto& one) { return one.first == device; }))
      measured.emplace_back(device, machine_rates(device, options.cache).rates);
  }
  std::sort(measured.begin(), measured.end(),
            [](const auto& a, const auto& b) { return a.first.str() < b.first.str(); });
  options.cost_model = cost_model_with(std::move(measured), "measured");
}

}  // namespace tandem
