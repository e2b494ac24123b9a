/// Small files beside the entries of a cache: what was found out about the machine.
#pragma once

#include <tandem/options.h>

#include <optional>

namespace tandem::cache {

/// What was noted under a name (lower-case hex) in the folder; nothing where there is no folder or no such
/// note. A damaged one is as good as none, with a warning. Options are settled.
std::optional<std::string> read_note(const CacheOptions& settled, const std::string& name);

/// Notes it for later processes; a folder that does not take it is left as it is.
void write_note(const CacheOptions& settled, const std::string& name, const std::string& text);

}  // namespace tandem::cache
