#include <tandem/partition.h>

#include "base/by_name.h"

namespace tandem {

static Partitioner min_cut() {
  Partitioner partitioner(&partition_min_cut, "min_cut", "1");
  partitioner.takes_narrow_forms = true;
  return partitioner;
}

static ByName<Partitioner>& known_partitioners() {
  static ByName<Partitioner> known(
      "partitioner", {
                         {"default", Partitioner(&partition_default, "default", "1")},
                         {"min_cut", min_cut()},
                         {"recompute_all", Partitioner(&partition_recompute_all, "recompute_all", "2")},
                         {"save_all", Partitioner(&partition_save_all, "save_all", "2")},
                     });
  return known;
}

void register_partitioner(const std::string& name, Partitioner partitioner) {
  if (!partitioner)
    throw Error("register_partitioner was given no function under the name '" + name + "'; pass one");
  known_partitioners().add(name, std::move(partitioner));
}

Partitioner find_partitioner(const std::string& name) { return known_partitioners().find(name); }

}  // namespace tandem
