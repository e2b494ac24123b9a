/// What torch.utils.checkpoint does: the hooks on saved tensors that it sets, and its reentrant form.
#pragma once

namespace tandem::python {

/// From now on traces know both from anybody else's.
void know_checkpoints();

}  // namespace tandem::python
