/// Backends turn a graph into something that runs; a user's own is a peer of ours.
#pragma once

#include <tandem/contract.h>
#include <tandem/passes.h>

#include <memory>
#include <optional>

namespace [[gnu::visibility("default")]] tandem {

struct Options;

/// A call that compiled code makes: of a kernel that was made for it, or of one of a library's.
struct KernelInfo {
  std::string name;  ///< "aten::addmm" of a library's; of others as debuggers and profilers show it
  bool is_generated = false;
  Stage stage = Stage::Inference;       ///< of the code that makes the call; Explanation fills it in
  std::vector<std::string> nodes = {};  ///< what it computes: names of values of the graph
};

/// A text of what code is made of, for people.
struct Listing {
  std::string ending;  ///< of the name of the file that TANDEM_DUMP writes: "kernel-0.ll"
  std::string text;
};

/// Compiled code. What is said here of one that a compiler or a backend made is made true of it before it is
/// run.
class Executable {
 public:
  virtual ~Executable() = default;
  /// One tensor for each output of the graph, undefined where the graph has none. The results belong to the
  /// caller, who may write them; the argument may be emptied, so that an input can die at its last use. Runs
  /// below autograd, with autocast off: what it calls of ATen leaves no history.
  virtual Tensors run(Tensors&& inputs) = 0;
  /// Whether any number of threads may be in `run` at once; one that may not is entered by one at a time.
  virtual bool may_overlap() const { return true; }
  /// Whether `run` goes below autograd by itself.
  virtual bool shields_itself() const { return false; }
  /// The bytes from which the backend's `load` gives it back, or nothing.
  virtual std::optional<std::vector<uint8_t>> artifact() const { return std::nullopt; }
  /// The strides of each output where the backend chose them; empty: those of the graph. An output of other
  /// strides than the graph's is copied into these.
  virtual std::vector<std::vector<int64_t>> output_strides() const { return {}; }
  /// What it calls, in that order; of libraries only what takes a kernel, no views. Given the graph that it
  /// was made of; empty where it does not say.
  virtual std::vector<KernelInfo> kernels(const Graph&) const { return {}; }
  /// What it is made of besides the graph; asked for where somebody wants to read it.
  virtual std::vector<Listing> listings() const { return {}; }
};

/// What a compiler is told besides the graph.
struct CompileContext {
  Stage stage = Stage::Inference;
  size_t graph_id = 0;  ///< of the function: all of its code shares it
  /// which of the function's signatures, counted from 0: a forward and its backwards share it
  size_t signature = 0;
  /// of differentiation: 1 for the function and its gradient, 2 for a gradient that has one in turn
  size_t order = 1;
  size_t variant = 0;  ///< which of the backwards of this order, counted from 0
  std::string name;    ///< Options::name, else a number
  Contract contract;   ///< of the signature
  /// that of the inputs and outputs; an accelerator where there are several
  c10::Device device = c10::kCPU;
  /// positions of inputs whose address stays: parameters, buffers, captures
  std::vector<size_t> static_inputs;
  /// Positions of inputs that nobody else reads once the last backward has run: memory of one whose
  /// use_count() is 1 may be used for something else.
  std::vector<size_t> donated_inputs;
  /// from here on inputs are tangents; the number of inputs where there are none
  size_t first_tangent = 0;
  std::vector<TensorMeta> example;  ///< metadata of the inputs
  /// of libtorch's pool, when the signature was met: code for the CPU may be divided for so many
  int threads = 1;
  const Options* options = nullptr;
};

/// Makes code of a graph, in the place of a backend.
using Compiler = Named<std::shared_ptr<Executable>(const Graph&, const CompileContext&)>;

/// Compiles graphs; Options::backend names one that is registered.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// Part of every key of the cache: another where it makes other code of the same graph.
  virtual std::string version() const = 0;
  /// Code that computes what the graph says.
  virtual std::shared_ptr<Executable> compile(const Graph&, const CompileContext&) = 0;
  /// Whether its code draws from the `Node::state` of a random node that has one, as Graph::run does.
  /// Functions with such nodes run as they are otherwise.
  virtual bool draws_from_states() const { return false; }
  /// Whether it prefers counter-based random numbers to libtorch's, where Options::random is empty.
  virtual bool prefers_counter_numbers() const { return false; }
  /// Whether it computes a node in loops together with its neighbours, so that computing it again takes no
  /// longer than reading its results from memory; partitioners ask.
  virtual bool fuses(const Graph&, const Node&) const { return false; }
  /// Which decompositions it wants to see applied first.
  virtual DecompositionTable decompositions() const { return {}; }
  /// Which passes are to run on the graphs of a stage that it is asked to compile, behind the registered
  /// ones; its version stands for them too.
  virtual std::vector<Pass> passes(Stage) const { return {}; }
  /// The executable whose `artifact` these bytes are, made of this graph in an equal context, or null.
  virtual std::shared_ptr<Executable> load(const std::vector<uint8_t>& bytes, const Graph& graph,
                                           const CompileContext& context);
  /// Forgets what it keeps between compiles.
  virtual void reset() {}
};

/// Adds a backend, or replaces the one with its name.
void register_backend(std::shared_ptr<Backend> backend);
/// The backend with this name; throws Error that lists the known ones.
std::shared_ptr<Backend> find_backend(const std::string& name);
/// The names of all backends.
std::vector<std::string> backends();

/// An executable that calls a plain function of its inputs.
std::shared_ptr<Executable> boxed(std::function<Tensors(Tensors&&)> fn);

}  // namespace tandem
