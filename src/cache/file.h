/// Files that are either whole or not there.
#pragma once

#include <sys/stat.h>

#include <chrono>

#include "cache/folder.h"

namespace tandem::cache {

using Time = std::chrono::sys_time<std::chrono::nanoseconds>;

/// Nothing when there is no regular file of the name.
std::optional<struct stat> look_at(const Folder& folder, const std::string& name);
/// When the file was last written, or marked as used.
Time last_use(const struct stat& status);
/// Whether it was there; throws Error when it is there and cannot be removed.
bool remove_file(const Folder& folder, const std::string& name);
/// Removes the file if it is still the one that is open and if that is allowed.
void discard(const Folder& folder, const std::string& name, const Descriptor& file);

/// Opens for reading, without following a link and without waiting for whoever might be at its other end;
/// empty, and errno says why, when it cannot.
Descriptor open_file(const Folder& folder, const std::string& name);
/// All bytes of a regular file; nothing, and errno says why, when they cannot be read.
std::optional<std::string> read_all(const Descriptor& file);
/// Notes that the file was used now, finely enough to order two uses; nothing happens where that is not
/// allowed.
void mark_as_used(const Descriptor& file);

/// The file of the name has these bytes afterwards, or (Error) what it had before: they are written beside
/// it, flushed and renamed. A writer that dies leaves a temporary file behind.
void write_file(const Folder& folder, const std::string& name, const std::string& bytes);
/// Whether this is the name of a temporary file that nobody writes to any more.
bool is_abandoned(const Folder& folder, const std::string& name);

}  // namespace tandem::cache
