/// What the commands below `tandem cache` share.
#pragma once

#include "bench.h"
#include "stored.h"

namespace tandem::cli {

struct CacheCommand {
  std::filesystem::path directory, file;
  std::string key;
  std::vector<std::string> keys;
  uint64_t max_bytes = CacheOptions{}.max_bytes;
  bool json = false, graphs = false;

  CacheOptions options() const {
    CacheOptions settled = cache_at(directory);
    settled.max_bytes = max_bytes;
    return settled;
  }
};

/// One line on standard output.
void print(const Json& object);

/// Every entry of the folder, a line each.
void print_entries(const CacheCommand& command);

/// The entry that `command.key` names, with all that it holds.
void show_entry(const CacheCommand& command);

}  // namespace tandem::cli
