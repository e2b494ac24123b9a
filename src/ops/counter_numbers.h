/// Random numbers that are a function of a key and a counter: whoever has both has the numbers again, on any
/// device and whatever the number of threads.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>

namespace tandem {

using PhiloxWords = std::array<uint32_t, 4>;

/// Philox 4x32 in ten rounds (Salmon, Moraes, Dror, Shaw, 2011): four random words for each counter and key.
PhiloxWords philox(PhiloxWords counter, std::array<uint32_t, 2> key);

/// tandem::counter_seed: a key and an offset, drawn from the live generator of a device, as two whole
/// numbers on the CPU. The other two operators are functions of such a seed and the number of a stream:
/// tandem::counter_uniform gives numbers of [0, 1), tandem::counter_normal those of the standard normal
/// distribution.
const c10::OperatorHandle& counter_seed_operator();

}  // namespace tandem
