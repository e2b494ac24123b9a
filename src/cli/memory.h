/// How many bytes of tensors a piece of work needs at its highest.
#pragma once

#include <c10/core/Device.h>

#include <functional>

namespace tandem::cli {

/// The highest number of live tensor bytes on `device` during `work`, above what was live at its start; for
/// one caller at a time.
int64_t peak_bytes(c10::Device device, const std::function<void()>& work);

}  // namespace tandem::cli
