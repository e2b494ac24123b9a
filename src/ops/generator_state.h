/// States of random number generators as tensors: reading the live one, and drawing from one that was read.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace tandem {

/// tandem::generator_state: the live state of a generator, that of the device where none is given. A call of
/// it keeps its place among those that draw.
const c10::OperatorHandle& generator_state_operator();
bool reads_generator(const c10::OperatorHandle& op);

/// How many bytes the state of a device's generator has.
int64_t generator_state_bytes(c10::Device device);

/// Whether an operator that draws random numbers on this device can be made to draw them from a given state.
bool can_draw_from_state(const c10::OperatorHandle& op, c10::Device device);

/// While one lives, operators for which `can_draw_from_state` holds draw on its thread from a generator of
/// its own that begins in `state`, wherever they are given none; the live generator is neither read nor set.
class DrawsFromState {
 public:
  DrawsFromState(c10::Device device, const at::Tensor& state);
  ~DrawsFromState();
  DrawsFromState(const DrawsFromState&) = delete;

  /// The state behind what was drawn so far.
  at::Tensor state() const;

 private:
  at::Generator generator_;
  const at::Generator* const outer_;
};

}  // namespace tandem
