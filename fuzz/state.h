/// What random programs keep, set and run besides operators; a run starts with none of it.
#pragma once

#include <ATen/ATen.h>

namespace tandem::fuzz {

/// Forgets what programs on this thread have kept.
void forget_state();

/// A state that is carried on: what slot `slot` holds, where it has the sizes and dtype of `x`, is added to
/// `x`, and the sum is held from now on.
at::Tensor carry(int64_t slot, const at::Tensor& x);
/// A tensor that is made when it is first needed, added to `x`.
at::Tensor add_noise_made_once(int64_t slot, const at::Tensor& x);
/// Adds `x` to a history, whose length is added to `x`.
at::Tensor add_length_of_history(const at::Tensor& x);

/// Random numbers from a generator that is seeded anew, and which then goes on as if nothing had been.
at::Tensor add_noise_of_seed(int64_t seed, const at::Tensor& x);
/// The same random numbers twice: the state is saved, and put back.
at::Tensor multiply_noise_twice(const at::Tensor& x);

/// The gradient that has gathered in `x`, where it is a leaf and has one, added to it.
at::Tensor add_gradient(const at::Tensor& x);
/// Gives a leaf a gradient, or takes it away.
void set_gradient(const at::Tensor& x);
void clear_gradient(const at::Tensor& x);

/// `x` with a hook that scales its gradient.
at::Tensor hooked(int64_t factor, const at::Tensor& x);

/// Products by custom functions: of what they saved, and of what their context keeps.
at::Tensor custom_product(const at::Tensor& x, const at::Tensor& y);
at::Tensor custom_scaled(int64_t factor, const at::Tensor& x);

}  // namespace tandem::fuzz
