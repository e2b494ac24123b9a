/// One kernel's code in memory.
#pragma once

#include <string_view>

#include "native/artifact.h"
#include "native/code.h"
#include "native/executable.h"

namespace tandem::native {

/// Puts an artifact, whose bytes are kept, into memory. Throws Error where the system does not allow it.
CodePointer in_memory(std::vector<uint8_t> bytes, const Artifact& artifact);

}  // namespace tandem::native
