/// How rows of the table of steps are written: ROW's expression is both the code that runs and the text that
/// is printed.
#pragma once

#include "fuzz/program.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace tandem::fuzz {

inline Tensors listed(at::Tensor tensor) { return {std::move(tensor)}; }
inline Tensors listed(Tensors tensors) { return tensors; }

std::vector<Row> value_rows();
std::vector<Row> view_rows();
std::vector<Row> write_rows();
std::vector<Row> state_rows();

}  // namespace tandem::fuzz

#define ROW(kind, weight, tensors, ints, ...)                                       \
  Row {                                                                             \
    #__VA_ARGS__, tensors, ints, Kind::kind, weight, false, false,                  \
        []([[maybe_unused]] Tensors t, [[maybe_unused]] const Ints& i) -> Tensors { \
          return listed(__VA_ARGS__);                                               \
        }                                                                           \
  }
#define LIST_ROW(kind, weight, tensors, ints, ...)                                  \
  Row {                                                                             \
    #__VA_ARGS__, tensors, ints, Kind::kind, weight, true, false,                   \
        []([[maybe_unused]] Tensors t, [[maybe_unused]] const Ints& i) -> Tensors { \
          return listed(__VA_ARGS__);                                               \
        }                                                                           \
  }
#define VOID_ROW(kind, weight, tensors, ints, ...)                                  \
  Row {                                                                             \
    #__VA_ARGS__, tensors, ints, Kind::kind, weight, false, true,                   \
        []([[maybe_unused]] Tensors t, [[maybe_unused]] const Ints& i) -> Tensors { \
          __VA_ARGS__;                                                              \
          return {};                                                                \
        }                                                                           \
  }
