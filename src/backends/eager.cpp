#include "backends/direct_writes.h"
#include "backends/graph_artifact.h"
#include "backends/interpreter.h"
#include "backends/registry.h"

namespace tandem {
namespace {

class EagerExecutable final : public Executable {
 public:
  explicit EagerExecutable(Graph graph) : graph_(std::move(graph)), program_(write_inputs_directly(graph_)) {}
  Tensors run(Tensors&& inputs) override { return program_.run(std::move(inputs)); }

  bool shields_itself() const override { return true; }
  std::optional<std::vector<uint8_t>> artifact() const override { return bytes_of(graph_); }

 private:
  const Graph graph_;
  Program program_;
};

class EagerBackend final : public Backend {
 public:
  std::string name() const override { return "eager"; }
  std::string version() const override { return "1"; }
  bool draws_from_states() const override { return true; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext&) override { return std::make_shared<EagerExecutable>(graph); }
  std::shared_ptr<Executable> load(const std::vector<uint8_t>& bytes, const Graph&, const CompileContext&) override { return std::make_shared<EagerExecutable>(graph_from(bytes)); }
};

}  // namespace

std::shared_ptr<Backend> make_eager_backend() { return std::make_shared<EagerBackend>(); }

}  // namespace tandem
