#include <tandem/error.h>
#include <tandem/partition.h>

#include <mutex>

namespace tandem {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, Partitioner> partitioners{
      {"default", Partitioner(&partition_default, "default", "1")},
      {"recompute_all", Partitioner(&partition_recompute_all, "recompute_all", "2")},
      {"save_all", Partitioner(&partition_save_all, "save_all", "2")},
  };
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

void register_partitioner(const std::string& name, Partitioner partitioner) {
  if (!partitioner) throw Error("register_partitioner was given no function under the name '" + name + "'; pass one");
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  all.partitioners[name] = std::move(partitioner);
}

Partitioner find_partitioner(const std::string& name) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.partitioners.find(name);
  if (found != all.partitioners.end()) return found->second;
  std::string known;
  for (const auto& [other, partitioner] : all.partitioners) known += (known.empty() ? "" : ", ") + other;
  throw Error("there is no partitioner named '" + name + "'; choose one of " + known + ", or add yours with register_partitioner");
}

}  // namespace tandem
