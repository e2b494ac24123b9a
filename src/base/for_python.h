/// What the library exports of its insides.
#pragma once

/// Marks what the Python extension uses besides the public headers: it is linked with the library, not with a
/// copy of the code, so that backends, versions and traces are one with those of C++ libraries in its
/// process.
#define TANDEM_FOR_PYTHON [[gnu::visibility("default")]]
