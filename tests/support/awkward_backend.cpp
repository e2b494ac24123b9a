// With TANDEM_AWKWARD_BACKEND set the backend "eager" of a test program is one of a stranger's: it calls ATen
// itself, chooses the strides of what it returns, and must not be entered twice at once. Whatever the tests
// expect of compiled code holds for its code too.
#include <tandem/backend.h>
#include <tandem/error.h>

#include <atomic>
#include <cstdlib>
#include <map>

#include <torch/torch.h>

#include "graph/boxing.h"
#include "graph/draws.h"
#include "ops/generator_state.h"

namespace {

using namespace tandem;

/// Columns first.
std::vector<int64_t> reversed_strides(const TensorMeta& meta) {
  std::vector<int64_t> strides(meta.sizes.size());
  int64_t stride = 1;
  for (size_t d = 0; d < strides.size(); ++d) {
    strides[d] = stride;
    stride *= std::max<int64_t>(meta.sizes[d], 1);
  }
  return strides;
}

class Awkward final : public Executable {
 public:
  explicit Awkward(const Graph& graph) : graph_(graph) {}

  Tensors run(Tensors&& inputs) override {
    if (running_.exchange(true)) throw Error("the awkward backend was entered twice");
    struct Leave {
      std::atomic<bool>& running;
      ~Leave() { running = false; }
    } leave{running_};
    std::map<Value, at::Tensor> known;
    for (const auto& [value, constant] : graph_.constants()) known[value] = constant;
    for (size_t i = 0; i < inputs.size(); ++i) known[graph_.inputs()[i]] = std::move(inputs[i]);
    for (const Node& node : graph_.nodes()) call(node, known);
    Tensors results;
    for (Value output : graph_.outputs()) results.push_back(output ? known[output] : at::Tensor());
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].defined() && chooses(i))
        results[i] = torch::empty_strided(results[i].sizes(), reversed_strides(meta(i)), results[i].options())
                         .copy_(results[i]);
    return results;
  }

  bool may_overlap() const override { return false; }

  std::vector<std::vector<int64_t>> output_strides() const override {
    std::vector<std::vector<int64_t>> chosen;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (!graph_.outputs()[i])
        chosen.emplace_back();
      else if (chooses(i))
        chosen.push_back(reversed_strides(meta(i)));
      else
        chosen.emplace_back(meta(i).strides.begin(), meta(i).strides.end());
    }
    return chosen;
  }

 private:
  const TensorMeta& meta(size_t output) const { return graph_.meta(graph_.outputs()[output]); }
  bool chooses(size_t output) const {
    return meta(output).sizes.size() > 1 && !meta(output).conj && !meta(output).neg;
  }

  static c10::IValue boxed_list(const std::vector<Value>& list, const c10::Argument& argument,
                                std::map<Value, at::Tensor>& known) {
    if (is_list_of_numbers(*argument.type())) {
      c10::List<at::Scalar> numbers;
      for (Value value : list) numbers.push_back(known[value].item());
      return numbers;
    }
    if (!is_list_of_optionals(argument)) {
      c10::List<at::Tensor> tensors;
      for (Value value : list) tensors.push_back(value ? known[value] : at::Tensor());
      return tensors;
    }
    c10::List<std::optional<at::Tensor>> tensors;
    for (Value value : list) tensors.push_back(value ? std::optional(known[value]) : std::nullopt);
    return tensors;
  }

  static c10::IValue boxed_operand(const Operand& operand, const c10::Argument& argument,
                                   std::map<Value, at::Tensor>& known) {
    if (auto* constant = std::get_if<c10::IValue>(&operand)) return *constant;
    if (auto* list = std::get_if<std::vector<Value>>(&operand)) return boxed_list(*list, argument, known);
    const Value value = std::get<Value>(operand);
    if (value && is_number(*argument.type())) return known[value].item();
    if (value) return known[value];
    return is_optional(argument) ? c10::IValue() : c10::IValue(at::Tensor());
  }

  void call(const Node& node, std::map<Value, at::Tensor>& known) const {
    std::optional<DrawsFromState> draws;
    if (node.state) draws.emplace(drawn_on(graph_, node), known[node.state]);
    call_operator(node, known);
    if (node.next_state) known[node.next_state] = draws->state();
  }

  static void call_operator(const Node& node, std::map<Value, at::Tensor>& known) {
    torch::jit::Stack stack;
    for (size_t i = 0; i < node.arguments.size(); ++i)
      stack.push_back(boxed_operand(node.arguments[i], node.op.schema().arguments()[i], known));
    for (const auto& [before, after] : node.writes) known[after] = known[before];
    node.op.callBoxed(stack);
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (auto* value = std::get_if<Value>(&node.results[i]); value && *value)
        known[*value] = stack[i].isTensor() ? stack[i].toTensor() : at::Tensor();
      if (auto* list = std::get_if<std::vector<Value>>(&node.results[i])) {
        const auto made = stack[i].toTensorVector();
        for (size_t j = 0; j < list->size(); ++j)
          if ((*list)[j]) known[(*list)[j]] = made[j];
      }
    }
  }

  const Graph graph_;
  std::atomic<bool> running_ = false;
};

class AwkwardBackend final : public Backend {
 public:
  std::string name() const override { return "eager"; }
  std::string version() const override { return "awkward"; }
  bool draws_from_states() const override { return true; }
  std::shared_ptr<Executable> compile(const Graph& graph, const CompileContext&) override {
    return std::make_shared<Awkward>(graph);
  }
};

const bool is_awkward = [] {
  if (!std::getenv("TANDEM_AWKWARD_BACKEND")) return false;
  register_backend(std::make_shared<AwkwardBackend>());
  return true;
}();

}  // namespace
