#include "backends/fused_executable.h"

#include <algorithm>

#include "backends/direct_writes.h"
#include "backends/fused_call.h"
#include "backends/interpreter.h"
#include "backends/library_calls.h"
#include "backends/products.h"
#include "native/named_code.h"
#include "ops/facts.h"

namespace tandem {
namespace {

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

  std::vector<KernelInfo> kernels(const Graph& graph) const override {
    std::vector<KernelInfo> found;
    const Graph calls = copies_back(fused_.graph) ? write_inputs_directly(fused_.graph) : fused_.graph;
    for (const Node& node : calls.nodes())
      if (node.op == fused_operator())
        add_launches(number_in(node), graph, found);
      else if (node.op == side_by_side_operator())
        add_products(node, calls, found);
      else if (is_library_call(node))
        found.push_back(library_call(calls, node));
    return found;
  }

  std::vector<Listing> listings() const override {
    std::vector<Listing> found{{"groups.txt", to_string(fused_)}};
    std::vector<loops::Kernel> seen;
    for (const loops::Kernel& kernel : kernels_of(fused_))
      if (std::find(seen.begin(), seen.end(), kernel) == seen.end()) {
        add_listings(kernel, "kernel-" + std::to_string(seen.size()), found);
        seen.push_back(kernel);
      }
    return found;
  }

 private:
  /// Of the group or the products that it stands for.
  static size_t number_in(const Node& node) {
    return size_t(std::get<c10::IValue>(node.arguments[1]).toInt());
  }

  void add_launches(size_t group, const Graph& graph, std::vector<KernelInfo>& found) const {
    std::vector<std::string> nodes;
    for (const auto* members : {&fused_.members[group].own, &fused_.members[group].borrowed})
      for (int32_t member : *members) nodes.push_back(name_of(graph, graph.nodes().at(size_t(member))));
    for (const loops::Launch& launch : fused_.groups[group].launches)
      found.push_back({.name = native::name_of(launch.kernel), .is_generated = true, .nodes = nodes});
  }

  void add_products(const Node& call, const Graph& calls, std::vector<KernelInfo>& to) const {
    const auto& results = std::get<std::vector<Value>>(call.results[0]);
    for (size_t p = 0; const Graph& product : fused_.side_by_side[number_in(call)])
      to.push_back({.name = full_name(product.nodes()[0].op), .nodes = {calls.name(results[p++])}});
  }

  void add_listings(const loops::Kernel& kernel, const std::string& name, std::vector<Listing>& found) const {
    found.push_back({name + ".loops.txt", to_string(kernel)});
    if (machine_.empty() || !native::can_compile()) return;
    native::Texts texts = native::texts_of(kernel);
    found.push_back({name + ".ll", std::move(texts.ir)});
    found.push_back({name + ".s", std::move(texts.assembly)});
  }

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

}  // namespace

std::shared_ptr<Executable> executable_of(FusedGraph fused, Machine machine) {
  return std::make_shared<FusedExecutable>(std::move(fused), std::move(machine));
}

}  // namespace tandem
