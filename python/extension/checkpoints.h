/// The hooks on saved tensors that torch.utils.checkpoint sets.
#pragma once

namespace tandem::python {

/// From now on traces know them from anybody else's.
void know_checkpoints();

}  // namespace tandem::python
