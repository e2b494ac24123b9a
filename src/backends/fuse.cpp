#include <tandem/error.h>

#include <c10/util/hash.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "backends/direct_writes.h"
#include "backends/fused_call.h"
#include "backends/fused_graph.h"
#include "backends/interpreter.h"
#include "backends/kept_memory.h"
#include "backends/products.h"
#include "backends/registry.h"
#include "base/log.h"
#include "graph/wire.h"
#include "loops/draft.h"
#include "native/code.h"
#include "passes/loop_table.h"

namespace tandem {
namespace {

using AllMembers = std::vector<loops::Members>;

/// Machine code of each launch of all groups, one behind the other; none where loops are interpreted.
using Machine = std::vector<native::CodePointer>;

std::vector<loops::Kernel> kernels_of(const FusedGraph& fused) {
  std::vector<loops::Kernel> kernels;
  for (const loops::Fused& group : fused.groups)
    for (const loops::Launch& launch : group.launches) kernels.push_back(launch.kernel);
  return kernels;
}

/// The members of each group; then each code once, and which one every launch has.
std::vector<uint8_t> bytes_of(const FusedGraph& fused, const Machine& machine) {
  ByteWriter writer;
  auto write_nodes = [&](const std::vector<int32_t>& nodes) {
    writer.list(nodes, [&](int32_t node) { writer.number(uint64_t(node)); });
  };
  writer.list(fused.members, [&](const loops::Members& members) {
    write_nodes(members.own);
    write_nodes(members.borrowed);
  });
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

std::vector<int32_t> read_nodes(ByteReader& reader) {
  constexpr uint64_t too_many = uint64_t(1) << 31;
  std::vector<int32_t> nodes;
  reader.list(1, [&] { nodes.push_back(int32_t(reader.number_below(too_many, "node"))); });
  if (!std::is_sorted(nodes.begin(), nodes.end(), std::less_equal<>()))
    reader.refuse("nodes are not in order");
  return nodes;
}

AllMembers read_members(ByteReader& reader) {
  AllMembers all;
  reader.list(2, [&] {
    std::vector<int32_t> own = read_nodes(reader);
    all.push_back({std::move(own), read_nodes(reader)});
  });
  return all;
}

/// What `bytes_of` wrote of the code of these kernels; nothing where it is of others, or not for this
/// processor.
std::optional<Machine> machine_from(ByteReader& reader, const std::vector<loops::Kernel>& kernels) {
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

bool is_on_cpu(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    bool on_cpu = true;
    for_each_result(node, [&](Value v) { on_cpu = on_cpu && graph.meta(v).device.is_cpu(); });
    if (!on_cpu) return false;
  }
  return true;
}

class FusedExecutable final : public Executable {
 public:
  FusedExecutable(FusedGraph fused, Machine machine)
      : fused_(std::move(fused)), machine_(std::move(machine)), interpreter_(interpreter_of()) {}

  Tensors run(Tensors&& inputs) override { return interpreter_.run(std::move(inputs)); }
  bool shields_itself() const override { return true; }
  std::optional<std::vector<uint8_t>> artifact() const override { return bytes_of(fused_, machine_); }

 private:
  Interpreter interpreter_of() const {
    std::vector<size_t> first_launch = {0};  // of each group
    for (const loops::Fused& group : fused_.groups)
      first_launch.push_back(first_launch.back() + group.launches.size());
    const bool on_cpu = is_on_cpu(fused_.graph);
    auto own = [&](const CallSite& site) -> std::unique_ptr<Call> {
      auto number = [&] { return size_t(std::get<c10::IValue>(site.arguments[1]).toInt()); };
      if (site.op == side_by_side_operator())
        return make_side_by_side_call(site, fused_.side_by_side[number()]);
      if (site.op != fused_operator()) return on_cpu ? make_product_call(site) : nullptr;
      return make_fused_call(site, site_of(fused_.groups[number()], first_launch[number()]));
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

/// Groups that were found, by the nodes of their graph and the number of threads, whatever the sizes: another
/// size is grouped alike.
class KnownGroups {
 public:
  FusedGraph fuse(const Graph& graph, int threads) {
    const size_t key = structure_of(graph, threads);
    const std::shared_ptr<const AllMembers> known = find(key);
    FusedGraph fused = tandem::fuse(graph, threads, known.get());
    if (!known) add(key, fused.members);
    if (logs("loops")) log("loops", to_string(fused));
    return fused;
  }
  void add(const Graph& graph, int threads, AllMembers members) {
    add(structure_of(graph, threads), std::move(members));
  }
  void forget() {
    std::lock_guard lock(mutex_);
    all_.clear();
  }

 private:
  /// Equal for graphs of equal nodes; what groups are found by it is checked against the graph.
  static size_t structure_of(const Graph& graph, int threads) {
    size_t hash = c10::hash_combine(graph.nodes().size(), size_t(threads));
    auto mix = [&](size_t part) { hash = c10::hash_combine(hash, part); };
    auto mix_values = [&](const Operand& operand) {
      for_each_value(operand, [&](Value v) { mix(size_t(v.id)); });
    };
    for (const Node& node : graph.nodes()) {
      mix(std::hash<c10::OperatorHandle>()(node.op));
      for (const Operand& argument : node.arguments) mix_values(argument);
      for (const Operand& result : node.results) mix_values(result);
    }
    for (Value output : graph.outputs()) mix(size_t(output.id));
    return hash;
  }

  std::shared_ptr<const AllMembers> find(size_t key) {
    std::lock_guard lock(mutex_);
    const auto found = all_.find(key);
    return found == all_.end() ? nullptr : found->second;
  }

  void add(size_t key, AllMembers members) {
    constexpr size_t most = 1024;
    std::lock_guard lock(mutex_);
    if (all_.size() >= most) all_.clear();
    all_[key] = std::make_shared<const AllMembers>(std::move(members));
  }

  std::mutex mutex_;
  std::unordered_map<size_t, std::shared_ptr<const AllMembers>> all_;
};

class FuseBackend : public Backend {
 public:
  std::string name() const override { return "fuse"; }
  std::string version() const override { return "1"; }
  bool draws_from_states() const override { return true; }
  bool fuses(const Graph& graph, const Node& node) const override { return loops::is_for_loops(graph, node); }
  DecompositionTable decompositions() const override { return loop_decompositions(); }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    FusedGraph fused = known_.fuse(graph, context.threads);
    Machine machine = native::code_of(kernels_of(fused));
    return std::make_shared<FusedExecutable>(std::move(fused), std::move(machine));
  }
  /// Bytes say which nodes are a group; what is read and written where is found in the graph.
  std::shared_ptr<Executable> load(const std::vector<uint8_t>& bytes, const Graph& graph,
                                   const CompileContext& context) override {
    ByteReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    known_.add(graph, context.threads, read_members(reader));
    FusedGraph fused = known_.fuse(graph, context.threads);
    std::optional<Machine> machine = machine_from(reader, kernels_of(fused));
    if (!machine) return nullptr;
    return std::make_shared<FusedExecutable>(std::move(fused), std::move(*machine));
  }
  void reset() override {
    native::forget_code();
    known_.forget();
    release_kept_memory();
  }

 protected:
  KnownGroups known_;
};

class LoopsBackend final : public FuseBackend {
 public:
  explicit LoopsBackend(std::function<void(FusedGraph&)> change) : change_(std::move(change)) {}
  std::string name() const override { return "loops"; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    FusedGraph fused = known_.fuse(graph, context.threads);
    if (change_) change_(fused);
    return std::make_shared<FusedExecutable>(std::move(fused), Machine());
  }
  std::shared_ptr<Executable> load(const std::vector<uint8_t>&, const Graph& graph,
                                   const CompileContext& context) override {
    return compile(graph, context);
  }

 private:
  const std::function<void(FusedGraph&)> change_;
};

}  // namespace

std::shared_ptr<Backend> make_fuse_backend() { return std::make_shared<FuseBackend>(); }
std::shared_ptr<Backend> make_loops_backend(std::function<void(FusedGraph&)> change) {
  return std::make_shared<LoopsBackend>(std::move(change));
}

}  // namespace tandem
