/// Which build of our code this is.
#pragma once

namespace tandem {

/// SHA-256, in hex, over the object files that the library is made of; written by the build.
extern const char* const code_hash;

}  // namespace tandem
