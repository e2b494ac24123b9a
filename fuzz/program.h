/// A random program as a value: a list of steps on a pool of tensors, the tensors it is given, and what it
/// returns.
#pragma once

#include <ATen/core/Tensor.h>
#include <tandem/graph.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::fuzz {

using Ints = std::vector<int64_t>;

/// What a step does to the world, which decides where the generator may put it.
enum class Kind : uint8_t { Value, View, Write, Random, Shape, Grad, State, Effect, Hook, Custom };

/// One thing a step can do. The source text and the code come from one expression, so what is printed is what
/// ran.
struct Row {
  const char* text;  ///< of tensors t[..] and integers i[..]
  size_t tensors;
  /// one letter an integer: d a dimension of t[0], x an index along dimension i[0], n one of 0..3
  const char* ints;
  Kind kind;
  int weight;
  bool lists;    ///< the expression is a list of tensors
  bool nothing;  ///< the expression has no value
  Tensors (*run)(Tensors t, const Ints& i);
};
const std::vector<Row>& rows();

struct Step {
  size_t row = 0;
  std::vector<size_t> arguments;  ///< places in the pool
  Ints ints;
  bool no_grad = false;
  std::vector<size_t> results;  ///< places in the pool that nothing else fills
  /// of its results only the sizes are wanted: runs with other numbers where its operator refuses those that
  /// are there
  bool sizes_alone = false;
  /// places that it writes for nobody: where its operator refuses what is there, the writes are counted
  std::vector<size_t> only_counted = {};
};

enum class Origin : uint8_t { Leaf, Computed, View, Same };
enum class Layout : uint8_t { Dense, Transposed, Strided, Expanded };

/// One tensor that the program is given; place k of the pool holds given tensor k.
struct Given {
  Origin origin = Origin::Leaf;
  Layout layout = Layout::Dense;  ///< of leaves and computed tensors
  at::ScalarType dtype = at::kFloat;
  Ints sizes;
  bool requires_grad = false;
  bool captured = false;  ///< held by the function, not passed to it
  size_t of = 0;          ///< View, Same: of which earlier one
  int64_t view = 0;       ///< View: which
};

struct Program {
  std::vector<Given> given;
  std::vector<Step> steps;
  std::vector<size_t> outputs;
  /// seeds what the tensors hold, and which gradients are asked for
  uint64_t data = 0;
  bool higher_orders = false;  ///< all float64: gradients of gradients are compared as well
};

/// The tensors of one call.
struct Scene {
  Tensors pool;    ///< all given tensors, in order
  Tensors leaves;  ///< whose gradients count
};

/// Makes the given tensors; the captured ones are taken from `before`, where there is a call before.
Scene make_scene(const Program& program, uint64_t seed, const Scene* before = nullptr);

/// Whether some step keeps tensors beyond a call.
bool keeps_state(const Program& program);

/// The pool's places that are arguments of the call, or captured.
std::vector<size_t> arguments_of(const Program& program);

/// Runs the program: `pool` are all given tensors. What it does not fill is undefined.
Tensors interpret(const Program& program, Tensors pool);

/// The program without steps whose results nobody reads, and with other numbers where only the sizes of a
/// result are read: a compiled function does not compute them, and does not find the errors that lie in them.
/// Writes that nobody reads are there where they can be made, and else counted.
Program without_unread(const Program& program);

}  // namespace tandem::fuzz
