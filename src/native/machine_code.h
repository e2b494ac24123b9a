/// One kernel's code in memory.
#pragma once

#include <string>

#include "native/artifact.h"
#include "native/code.h"
#include "native/executable.h"

namespace tandem::native {

/// Compiles a verified kernel, whose text this is, for processors with these features; runs on such a one
/// alone.
CodePointer compiled_for(const loops::Kernel& kernel, const std::string& text, const std::string& features);

/// Puts an artifact of a kernel, whose bytes are kept, into memory. Throws Error where the system does not
/// allow it.
CodePointer in_memory(const loops::Kernel& kernel, std::vector<uint8_t> bytes, const Artifact& artifact);

}  // namespace tandem::native
