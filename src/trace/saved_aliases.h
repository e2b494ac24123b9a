/// What autograd saves while a program is traced.
#pragma once

namespace tandem {

/// From now on what libtorch's own nodes save of a program that this process traces is an alias, so that the
/// owners which a fake has when the program has ended are the program's, and everywhere SavedHooks are
/// heeded. Else nothing changes: libtorch's engine is asked as before.
void save_aliases();

}  // namespace tandem
