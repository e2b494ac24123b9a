/// Our own backends, and what `tandem::reset` asks of all of them.
#pragma once

#include <tandem/backend.h>

#include <functional>

namespace tandem {

struct FusedGraph;

/// Calls `reset` on every registered backend.
void reset_backends();

/// Interprets the graph with libtorch's operators; bit-equal to eager.
std::shared_ptr<Backend> make_eager_backend();
/// The same, checking every result against what the graph says about it.
std::shared_ptr<Backend> make_debug_backend();
/// Computes what loops can in machine code, and has libtorch do the rest.
std::shared_ptr<Backend> make_fuse_backend();
/// The same loops, interpreted element by element: slow, and the judge of `fuse`. `change` is for tests,
/// which plant bugs in the kernels of a graph.
std::shared_ptr<Backend> make_loops_backend(std::function<void(FusedGraph&)> change = {});

}  // namespace tandem
