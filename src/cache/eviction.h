/// What goes when a store is larger than it may be.
#pragma once

#include "cache/layout.h"

namespace tandem::cache {

/// Held by the one process that removes files from a store; nobody who reads or writes asks for it. Goes with
/// its owner, also when that dies.
std::optional<Descriptor> try_lock_removal(const Folder& root);
Descriptor lock_removal(const Folder& root);

uint64_t total_bytes(const std::vector<StoredFile>& files);

/// The files to remove, least recently used first, so that the others have at most `most` bytes.
std::vector<StoredFile> least_recently_used(std::vector<StoredFile> files, uint64_t most);

/// Whether it was removed: a file that was used or replaced since it was listed stays.
bool remove_unless_used(const Folder& root, const StoredFile& file);

}  // namespace tandem::cache
