/// Files that TANDEM_TRACE made.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "bench.h"
#include "key/components.h"

namespace tandem::cli {

/// All events of a file, one a line, in its order; throws Error with the number of a line that is none.
std::vector<Json> read_events(const std::filesystem::path& path);

/// What the keys in a file of events are made of.
std::map<std::string, cache::Components> components_in(const std::filesystem::path& path);

/// What chrome://tracing and Perfetto show: each compile and each backward as a bar, what it consists of
/// below it, and the rest as marks.
Json chrome_trace(const std::vector<Json>& events);

}  // namespace tandem::cli
