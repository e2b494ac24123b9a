#include <c10/util/hash.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "backends/fused_executable.h"
#include "backends/kept_memory.h"
#include "backends/registry.h"
#include "base/log.h"
#include "loops/nodes.h"
#include "passes/loop_table.h"

namespace tandem {
namespace {

using AllMembers = std::vector<loops::Members>;

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
    say_where_there_are_no_loops(context.device);
    FusedGraph fused = known_.fuse(graph, context.threads);
    Machine machine = native::code_of(kernels_of(fused));
    return executable_of(std::move(fused), std::move(machine));
  }
  /// Bytes say which nodes are a group; what is read and written where is found in the graph.
  std::shared_ptr<Executable> load(const std::vector<uint8_t>& bytes, const Graph& graph,
                                   const CompileContext& context) override {
    say_where_there_are_no_loops(context.device);
    ByteReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    known_.add(graph, context.threads, read_members(reader));
    FusedGraph fused = known_.fuse(graph, context.threads);
    std::optional<Machine> machine = read_machine(reader, kernels_of(fused));
    if (!machine) return nullptr;
    return executable_of(std::move(fused), std::move(*machine));
  }
  void reset() override {
    native::forget_code();
    known_.forget();
    release_kept_memory();
  }

 protected:
  KnownGroups known_;

 private:
  void say_where_there_are_no_loops(c10::Device device) {
    if (!device.is_cpu() && !has_said_it_.exchange(true))
      say("backend fuse: on " + c10::DeviceTypeName(device.type(), /*lower_case=*/true) +
          " everything runs through libtorch, for now");
  }

  std::atomic<bool> has_said_it_ = false;
};

class LoopsBackend final : public FuseBackend {
 public:
  explicit LoopsBackend(std::function<void(FusedGraph&)> change) : change_(std::move(change)) {}
  std::string name() const override { return "loops"; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext& context) override {
    FusedGraph fused = known_.fuse(graph, context.threads);
    if (change_) change_(fused);
    return executable_of(std::move(fused), Machine());
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
