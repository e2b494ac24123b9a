/// Where loops find the elements of a tensor.
#pragma once

#include <tandem/graph.h>

#include <optional>

namespace tandem::loops {

/// One loop of a nest that is being put together.
struct Loop {
  int64_t size;
  bool reduced = false;  ///< goes along dimensions that are folded
  friend bool operator==(const Loop&, const Loop&) = default;
};
using LoopNest = std::vector<Loop>;

/// The element at each place of a nest, in elements from where its storage begins: `offset`, and how far one
/// step of each loop leads. Views of one storage are read alike, whatever they were made by.
struct Access {
  Dims strides;
  int64_t offset = 0;
  friend bool operator==(const Access&, const Access&) = default;
};

/// How a loop goes along a tensor: `step` elements at a time in one dimension; -1 where it stays.
struct Along {
  int32_t dim = -1;
  int64_t step = 0;
};

/// That a loop has to become two, of which the inner one has so many steps.
struct Split {
  size_t loop;
  int64_t inner;
};

/// Of each loop of a nest.
using AlongLoops = c10::SmallVector<Along, 5>;

/// An access taken apart along the dimensions of a tensor that lies in the same storage.
struct Way {
  AlongLoops loops;
  Dims first;  ///< the index of the first element in each dimension
};

/// The way of an access along a tensor's dimensions; nothing where it leads elsewhere. Where it would be
/// there if a loop were two, `split` says which.
std::optional<Way> way_along(const LoopNest& nest, const Access& access, const TensorMeta& tensor,
                             std::optional<Split>& split);

/// Whether a way meets every element of the tensor, each at one place of the loops that move.
bool covers(const LoopNest& nest, const Way& way, const TensorMeta& tensor);

/// The same way along another tensor: `dim_of` says which of its dimensions (-1: none) takes the place of
/// one.
template <class DimOf>
Access access_along(const Way& way, const TensorMeta& tensor, DimOf&& dim_of) {
  Access access{Dims(way.loops.size(), 0), tensor.offset};
  for (size_t i = 0; i < way.loops.size(); ++i)
    if (way.loops[i].dim >= 0)
      if (const int32_t dim = dim_of(way.loops[i].dim); dim >= 0 && tensor.sizes[size_t(dim)] > 1)
        access.strides[i] = way.loops[i].step * tensor.strides[size_t(dim)];
  for (size_t k = 0; k < way.first.size(); ++k)
    if (const int32_t dim = dim_of(int32_t(k)); dim >= 0 && tensor.sizes[size_t(dim)] > 1)
      access.offset += way.first[k] * tensor.strides[size_t(dim)];
  return access;
}

/// How many elements it meets where loops that lead on lead apart.
int64_t elements(const LoopNest& nest, const Access& access);

/// An access with a loop made two.
void split_loop(Access& access, const Split& split);

}  // namespace tandem::loops
