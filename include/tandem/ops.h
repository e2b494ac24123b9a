/// What Tandem cannot read off an operator's schema and its user tells it.
#pragma once

#include <string>

namespace [[gnu::visibility("default")]] tandem {

/// Declares that an operator ("mylib::log", "mylib::log.verbose") does more than compute its results: it runs
/// at every call, in order, even when nothing reads what it returns. Operators that return nothing count as
/// such without it. Holds for what is compiled from now on.
void register_side_effect(const std::string& op);

}  // namespace tandem
