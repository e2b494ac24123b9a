#include "backends/direct_writes.h"
#include "backends/graph_artifact.h"
#include "backends/interpreter.h"
#include "backends/library_calls.h"
#include "backends/registry.h"

namespace tandem {
namespace {

class EagerExecutable final : public Executable {
 public:
  explicit EagerExecutable(const Graph& graph) : interpreter_(interpreter_of(graph)), graph_(graph) {}
  /// With the bytes of the artifact that an earlier one for this graph had.
  EagerExecutable(const Graph& graph, std::vector<uint8_t> artifact)
      : interpreter_(interpreter_of(graph)), artifact_(std::move(artifact)) {}
  Tensors run(Tensors&& inputs) override { return interpreter_.run(std::move(inputs)); }

  bool shields_itself() const override { return true; }
  std::optional<std::vector<uint8_t>> artifact() const override {
    return artifact_.empty() ? bytes_of(graph_) : artifact_;
  }
  std::vector<KernelInfo> kernels(const Graph& graph) const override {
    return library_calls(copies_back(graph) ? write_inputs_directly(graph) : graph);
  }

 private:
  static Interpreter interpreter_of(const Graph& graph) {
    return copies_back(graph) ? Interpreter(write_inputs_directly(graph)) : Interpreter(graph);
  }

  const Interpreter interpreter_;
  const Graph graph_;  ///< empty where there is an artifact
  const std::vector<uint8_t> artifact_;
};

class EagerBackend final : public Backend {
 public:
  std::string name() const override { return "eager"; }
  std::string version() const override { return "1"; }
  bool draws_from_states() const override { return true; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext&) override {
    return std::make_shared<EagerExecutable>(graph);
  }
  std::shared_ptr<Executable> load(const std::vector<uint8_t>& bytes, const Graph& graph,
                                   const CompileContext&) override {
    return std::make_shared<EagerExecutable>(graph, bytes);
  }
};

}  // namespace

std::shared_ptr<Backend> make_eager_backend() { return std::make_shared<EagerBackend>(); }

}  // namespace tandem
