/// What the compiler did, for other programs to read: one JSON line for each event, in the file that
/// TANDEM_TRACE names. Nothing of what tensors hold is in it.
#pragma once

#include <nlohmann/json.hpp>

namespace tandem {

/// Whether anybody asked: gather what an event says only then.
bool writes_events();

/// Appends one line: the event's name, the time in seconds since 1970, process and thread, then `fields`. In
/// a local file lines of several processes and threads never mix. A file that cannot be written is warned of
/// once.
void write_event(const char* event, const nlohmann::ordered_json& fields);

}  // namespace tandem
