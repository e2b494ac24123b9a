/// What libtorch's own modules keep in members besides their registered parameters.
#pragma once

#include <cstdint>
#include <vector>

namespace torch::nn {
class Module;
}

namespace tandem {

/// Appends which tensors are the members of a module of libtorch's and the numbers among its options; nothing
/// for a module of the user's.
void append_module_state(const torch::nn::Module& module, std::vector<uint64_t>& to);

}  // namespace tandem
