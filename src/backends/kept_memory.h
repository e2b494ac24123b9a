/// Memory of tensors that died, kept for the same step next time: the system gives fresh memory a page at a
/// time, which takes as long as what small kernels compute. Regions are made of large pages.
#pragma once

#include <tandem/graph.h>

namespace tandem {

/// A tensor on the CPU that holds whatever its memory held before, which dead ones had where there is enough.
/// What is held is at most a quarter, or 4 MB, more than what such tensors had at once of late, but for
/// regions that some of them still lie in.
at::Tensor make_from_kept(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype);

/// How many bytes are kept, whether tensors have them or not.
size_t held_bytes();

/// Gives back what no tensor has.
void release_kept_memory();

/// Meanwhile tensors, of all threads, get memory of their own: whoever counts what tensors need sees each.
class KeepNoMemory {
 public:
  KeepNoMemory();
  ~KeepNoMemory();
  KeepNoMemory(const KeepNoMemory&) = delete;
  KeepNoMemory& operator=(const KeepNoMemory&) = delete;

 private:
  const bool before_;
};

}  // namespace tandem
