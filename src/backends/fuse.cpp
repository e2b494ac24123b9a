#include <ATen/Parallel.h>
#include <tandem/error.h>

#include <map>

#include "backends/direct_writes.h"
#include "backends/fused_call.h"
#include "backends/fused_graph.h"
#include "backends/interpreter.h"
#include "backends/registry.h"
#include "base/log.h"
#include "graph/wire.h"
#include "loops/draft.h"
#include "native/code.h"
#include "passes/loop_table.h"

namespace tandem {
namespace {

/// Machine code of each launch of all groups, one behind the other; none where loops are interpreted.
using Machine = std::vector<native::CodePointer>;

std::vector<loops::Kernel> kernels_of(const FusedGraph& fused) {
  std::vector<loops::Kernel> kernels;
  for (const loops::Fused& group : fused.groups)
    for (const loops::Launch& launch : group.launches) kernels.push_back(launch.kernel);
  return kernels;
}

/// Each code once, and which one every launch has.
std::vector<uint8_t> bytes_of(const Machine& machine) {
  ByteWriter writer;
  std::map<const native::MachineCode*, size_t> places;
  std::vector<const native::MachineCode*> codes;
  for (const native::CodePointer& code : machine)
    if (places.try_emplace(code.get(), codes.size()).second) codes.push_back(code.get());
  writer.list(machine, [&](const native::CodePointer& code) { writer.number(places.at(code.get())); });
  writer.list(codes, [&](const native::MachineCode* code) {
    writer.text({reinterpret_cast<const char*>(code->bytes().data()), code->bytes().size()});
  });
  const std::string bytes = writer.take();
  return {bytes.begin(), bytes.end()};
}

/// What `bytes_of` wrote of the code of these kernels; nothing where it is of others, or not for this
/// processor.
std::optional<Machine> machine_from(const std::vector<uint8_t>& bytes,
                                    const std::vector<loops::Kernel>& kernels) {
  ByteReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::vector<size_t> places;
  reader.list(1, [&] { places.push_back(reader.number()); });
  std::vector<std::string_view> texts;
  reader.list(1, [&] { texts.push_back(reader.text()); });
  reader.expect_end();
  if (places.size() != kernels.size()) return std::nullopt;
  std::vector<std::pair<native::CodePointer, const loops::Kernel*>> codes(texts.size());
  Machine machine;
  for (size_t l = 0; l < places.size(); ++l) {
    if (places[l] >= codes.size()) return std::nullopt;
    auto& [code, kernel] = codes[places[l]];
    if (!code) {
      const std::string_view text = texts[places[l]];
      code = native::load_code(kernels[l], {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
      kernel = &kernels[l];
    }
    if (!code || *kernel != kernels[l]) return std::nullopt;
    machine.push_back(code);
  }
  return machine;
}

class FusedExecutable final : public Executable {
 public:
  FusedExecutable(FusedGraph fused, Machine machine)
      : fused_(std::move(fused)), machine_(std::move(machine)), interpreter_(interpreter_of()) {}

  Tensors run(Tensors&& inputs) override { return interpreter_.run(std::move(inputs)); }
  bool shields_itself() const override { return true; }
  std::optional<std::vector<uint8_t>> artifact() const override { return bytes_of(machine_); }

 private:
  Interpreter interpreter_of() const {
    std::vector<size_t> first_launch = {0};  // of each group
    for (const loops::Fused& group : fused_.groups)
      first_launch.push_back(first_launch.back() + group.launches.size());
    auto own = [&](const CallSite& site) -> std::unique_ptr<Call> {
      if (site.op != fused_operator()) return nullptr;
      const auto group = size_t(std::get<c10::IValue>(site.arguments[1]).toInt());
      return make_fused_call(site, site_of(fused_.groups[group], first_launch[group]));
    };
    const Graph& graph = fused_.graph;
    return copies_back(graph) ? Interpreter(write_inputs_directly(graph), Lifetime::LastUse, own)
                              : Interpreter(graph, Lifetime::LastUse, own);
  }

  FusedSite site_of(const loops::Fused& group, size_t first_launch) const {
    FusedSite site{group};
    for (size_t l = 0; l < group.launches.size(); ++l)
      site.codes.push_back(machine_.empty() ? nullptr : machine_[first_launch + l]->entry());
    for (Value input : group.inputs) site.inputs.push_back(fused_.graph.meta(input));
    for (Value output : group.outputs) site.outputs.push_back(fused_.graph.meta(output));
    return site;
  }

  const FusedGraph fused_;
  const Machine machine_;
  const Interpreter interpreter_;
};

FusedGraph fused_for_now(const Graph& graph) {
  FusedGraph fused = fuse(graph, at::get_num_threads());
  if (logs("loops")) log("loops", to_string(fused));
  return fused;
}

class FuseBackend : public Backend {
 public:
  std::string name() const override { return "fuse"; }
  std::string version() const override { return "1"; }
  bool draws_from_states() const override { return true; }
  bool fuses(const Graph& graph, const Node& node) const override { return loops::is_for_loops(graph, node); }
  DecompositionTable decompositions() const override { return loop_decompositions(); }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext&) override {
    FusedGraph fused = fused_for_now(graph);
    Machine machine = native::code_of(kernels_of(fused));
    return std::make_shared<FusedExecutable>(std::move(fused), std::move(machine));
  }
  /// The groups are found again in the graph, which was checked: bytes say nothing of what is read where.
  std::shared_ptr<Executable> load(const std::vector<uint8_t>& bytes, const Graph& graph,
                                   const CompileContext&) override {
    FusedGraph fused = fused_for_now(graph);
    std::optional<Machine> machine = machine_from(bytes, kernels_of(fused));
    if (!machine) return nullptr;
    return std::make_shared<FusedExecutable>(std::move(fused), std::move(*machine));
  }
  void reset() override { native::forget_code(); }
};

class LoopsBackend final : public FuseBackend {
 public:
  std::string name() const override { return "loops"; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext&) override {
    return std::make_shared<FusedExecutable>(fused_for_now(graph), Machine());
  }
  std::shared_ptr<Executable> load(const std::vector<uint8_t>&, const Graph& graph,
                                   const CompileContext& context) override {
    return compile(graph, context);
  }
};

}  // namespace

std::shared_ptr<Backend> make_fuse_backend() { return std::make_shared<FuseBackend>(); }
std::shared_ptr<Backend> make_loops_backend() { return std::make_shared<LoopsBackend>(); }

}  // namespace tandem
