#include "backends/graph_artifact.h"
#include "backends/interpreter.h"
#include "backends/library_calls.h"
#include "backends/registry.h"
#include "graph/geometry.h"
#include "graph/vocabulary.h"
#include "ops/facts.h"

#include <tandem/error.h>

namespace tandem {
namespace {

/// What is wrong with a result, or nothing.
std::string difference(const at::Tensor& tensor, const TensorMeta& meta) {
  if (!tensor.defined()) return "is undefined";
  if (tensor.scalar_type() != meta.dtype)
    return "has dtype " + std::string(toString(tensor.scalar_type())) + " where the record has " +
           toString(meta.dtype);
  if (tensor.device() != meta.device)
    return "is on " + tensor.device().str() + " where the record has " + meta.device.str();
  if (tensor.sizes() != at::IntArrayRef(meta.sizes))
    return "has sizes " + dims_word(tensor.sizes()) + " where the record has " + dims_word(meta.sizes);
  if (!tensor.has_storage()) return {};
  // Strides of tensors without elements address nothing, and kernels choose them freely.
  if (tensor.numel() > 0 && !same_strides(tensor.sizes(), tensor.strides(), meta.strides))
    return "has strides " + dims_word(tensor.strides()) + " where the record has " + dims_word(meta.strides);
  return {};
}

/// Memory without bytes is shared by nobody, whatever the pointers say.
bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.has_storage() && b.has_storage() && a.storage().nbytes() > 0 &&
         a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl();
}

class DebugExecutable final : public Executable {
 public:
  explicit DebugExecutable(const Graph& graph) : graph_(graph), interpreter_(graph, Lifetime::WholeRun) {}

  Tensors run(Tensors&& inputs) override {
    return interpreter_.run(std::move(inputs),
                            [this](size_t index, const at::Tensor* registers) { check(index, registers); });
  }
  bool shields_itself() const override { return true; }
  std::optional<std::vector<uint8_t>> artifact() const override { return bytes_of(graph_); }
  std::vector<KernelInfo> kernels(const Graph& graph) const override { return library_calls(graph); }

 private:
  void check(size_t index, const at::Tensor* registers) const {
    const Node& node = graph_.nodes()[index];
    for_each_result(node, [&](Value v) {
      std::string wrong = difference(registers[v.id], graph_.meta(v));
      if (!wrong.empty()) fail(index, v, wrong);
    });
    for_each_result(node, [&](Value result) {
      for_each_argument(node, [&](Value argument) { check_aliasing(index, result, argument, registers); });
      for_each_result(node, [&](Value other) {
        if (other != result) check_aliasing(index, result, other, registers);
      });
    });
  }

  void check_aliasing(size_t index, Value result, Value other, const at::Tensor* registers) const {
    int32_t recorded = graph_.meta(result).storage, others = graph_.meta(other).storage;
    if (recorded < 0 || others < 0) return;
    bool shared = share_memory(registers[result.id], registers[other.id]);
    if (shared && recorded != others)
      fail(index, result, "shares memory with " + graph_.name(other) + " where the record keeps them apart");
    bool can_tell = registers[result.id].defined() && registers[other.id].defined() &&
                    registers[result.id].numel() > 0 && registers[other.id].numel() > 0;
    if (!shared && recorded == others && can_tell)
      fail(index, result, "has memory of its own where the record shares it with " + graph_.name(other));
  }

  [[noreturn]] void fail(size_t index, Value v, const std::string& what) const {
    throw Error("node " + std::to_string(index) + ", " + full_name(graph_.nodes()[index].op) + ": result " +
                graph_.name(v) + " " + what + "; the shape rule or the pass that described it is wrong\n" +
                excerpt(graph_, index));
  }

  Graph graph_;
  Interpreter interpreter_;
};

class DebugBackend final : public Backend {
 public:
  std::string name() const override { return "debug"; }
  std::string version() const override { return "1"; }
  bool draws_from_states() const override { return true; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext&) override {
    return std::make_shared<DebugExecutable>(graph);
  }
  std::shared_ptr<Executable> load(const std::vector<uint8_t>&, const Graph& graph,
                                   const CompileContext&) override {
    return std::make_shared<DebugExecutable>(graph);
  }
};

}  // namespace

std::shared_ptr<Backend> make_debug_backend() { return std::make_shared<DebugBackend>(); }

}  // namespace tandem
