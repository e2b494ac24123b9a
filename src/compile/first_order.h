/// The gradient of a traced program, recorded behind it.
#pragma once

#include "aot/joint.h"
#include "compile/compilation.h"

namespace tandem {

/// Forward and expected backward of the traced program. Nothing where the backward reads a captured tensor
/// that the forward does not, or where eager would refuse it: then that error is put into `refused`, to be
/// thrown when the backward is called. Throws RunEagerly for a backward that is not compiled.
std::optional<JointGraph> differentiate_first(Compilation& compilation, std::exception_ptr& refused);

}  // namespace tandem
