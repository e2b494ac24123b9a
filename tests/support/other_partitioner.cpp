// With TANDEM_PARTITIONER set the partitioner of a test program is the one of that name. Whatever
// the tests expect of compiled code holds however it is split.
#include <tandem/options.h>
#include <tandem/partition.h>

#include <cstdlib>

namespace {

const bool is_split_otherwise = [] {
  const char* name = std::getenv("TANDEM_PARTITIONER");
  if (name) tandem::register_partitioner(tandem::Options{}.partitioner, tandem::find_partitioner(name));
  return name != nullptr;
}();

}  // namespace
