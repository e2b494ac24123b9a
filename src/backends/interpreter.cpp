#include "backends/interpreter.h"

#include "graph/in_place_adds.h"
#include "graph/draws.h"
#include "graph/uses.h"
#include "ops/facts.h"

#include <tandem/error.h>

#include <ATen/core/LegacyTypeDispatch.h>

namespace tandem {

/// Hands out registers while it walks the graph once; a register is used again as soon as its value is dead.
class Interpreter::Builder {
 public:
  Builder(const Graph& graph, Lifetime lifetime, const MakeCall& own, Interpreter& interpreter)
      : graph_(graph),
        own_(own),
        keep_all_(lifetime == Lifetime::WholeRun),
        interpreter_(interpreter),
        last_read_(last_reads(graph)),
        registers_(graph.value_count(), -1),
        constants_(graph.value_count()) {}

  void build() {
    if (keep_all_) interpreter_.register_count_ = graph_.value_count();
    for (const auto& [value, data] : graph_.constants()) constants_[value.id] = data;
    for (Value v : graph_.inputs()) interpreter_.inputs_.push_back(define(v));
    InPlaceAdds adds(graph_, last_read_);
    interpreter_.calls_.reserve(graph_.nodes().size());
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      CallSite site = bind(node, int32_t(i));
      interpreter_.calls_.push_back(make_call(std::move(site), keep_all_ ? std::nullopt : adds.target(i)));
      release_dead(node, int32_t(i));
    }
    for (Value v : graph_.outputs()) interpreter_.outputs_.push_back(v ? slot(v) : TensorSlot());
    mark_last_outputs();
  }

 private:
  std::unique_ptr<Call> make_call(CallSite site, std::optional<size_t> into) const {
    if (own_)
      if (auto call = own_(site)) return call;
    if (into) return make_accumulating_call(site, *into);
    if (site.draws_on) return make_replayed_call(make_boxed_call(site), site);
    if (auto unboxed = make_unboxed_call(site)) return unboxed;
    return make_boxed_call(std::move(site));
  }

  CallSite bind(const Node& node, int32_t index) {
    CallSite site{node.op};
    site.arguments.reserve(node.arguments.size());
    site.results.reserve(node.results.size());
    for (const Operand& argument : node.arguments) site.arguments.push_back(bind_argument(argument));
    if (node.state) bind_state(site, node);
    mark_last_reads(site, index);
    for (const auto& [before, after] : node.writes) bind_write(site, before, after);
    for (const Operand& result : node.results) site.results.push_back(bind_result(result));
    if (node.next_state) site.next_state = define(node.next_state);
    return site;
  }

  /// Whichever generator drew the first time, the state stands in for it.
  void bind_state(CallSite& site, const Node& node) {
    site.draws_on = drawn_on(graph_, node);
    site.state = slot(node.state);
    for (ArgumentSlot& argument : site.arguments)
      if (auto* constant = std::get_if<c10::IValue>(&argument); constant && constant->isGenerator())
        *constant = {};
  }

  ArgumentSlot bind_argument(const Operand& argument) {
    if (auto* value = std::get_if<Value>(&argument)) return *value ? slot(*value) : TensorSlot();
    if (auto* constant = std::get_if<c10::IValue>(&argument)) {
      if (constant->isTensor()) return TensorSlot{.bound = constant->toTensor()};
      return *constant;
    }
    std::vector<TensorSlot> slots;
    for (Value v : std::get<std::vector<Value>>(argument)) slots.push_back(v ? slot(v) : TensorSlot());
    return slots;
  }

  /// The last occurrence of a register that dies in this call frees it; earlier ones only read it.
  void mark_last_reads(CallSite& site, int32_t index) {
    if (keep_all_) return;
    c10::SmallVector<int32_t, 8> seen;
    auto mark = [&](TensorSlot& slot) {
      if (slot.index < 0 || last_read_[value_in_[slot.index]] != index) return;
      if (std::find(seen.begin(), seen.end(), slot.index) != seen.end()) return;
      seen.push_back(slot.index);
      slot.last = true;
    };
    for (auto argument = site.arguments.rbegin(); argument != site.arguments.rend(); ++argument) {
      if (auto* single = std::get_if<TensorSlot>(&*argument))
        mark(*single);
      else if (auto* list = std::get_if<std::vector<TensorSlot>>(&*argument))
        for (auto element = list->rbegin(); element != list->rend(); ++element) mark(*element);
    }
    mark(site.state);  // which is read before the arguments
  }

  void bind_write(CallSite& site, Value before, Value after) {
    if (constants_[before.id].defined())
      throw Error("the call " + full_name(site.op) + " writes the constant " + graph_.name(before) +
                  ", which all runs of the graph share; let it write a clone");
    if (after == before) return;
    TensorSlot written = slot(before);
    if (int32_t index = define(after); index >= 0) site.writes.emplace_back(std::move(written), index);
  }

  ResultSlot bind_result(const Operand& result) {
    if (auto* value = std::get_if<Value>(&result)) return *value ? define(*value) : -1;
    if (std::holds_alternative<c10::IValue>(result)) return -1;
    std::vector<int32_t> indices;
    for (Value v : std::get<std::vector<Value>>(result)) indices.push_back(v ? define(v) : -1);
    return indices;
  }

  /// A register for a value that starts to exist, or -1 when nothing reads it.
  int32_t define(Value v) {
    if (keep_all_) return registers_[v.id] = v.id;
    if (last_read_[v.id] == no_node) return -1;
    // a written argument that is also the call's result
    if (registers_[v.id] >= 0) return registers_[v.id];
    if (free_.empty()) {
      free_.push_back(int32_t(interpreter_.register_count_++));
      value_in_.push_back(-1);
    }
    int32_t index = free_.back();
    free_.pop_back();
    value_in_[index] = v.id;
    return registers_[v.id] = index;
  }

  TensorSlot slot(Value v) {
    if (registers_[v.id] >= 0) return {registers_[v.id]};
    if (constants_[v.id].defined()) return {-1, false, constants_[v.id]};
    throw Error("the graph reads " + graph_.name(v) +
                " before anything defines it; check it with Graph::verify");
  }

  /// Behind the call, so that no result shares a register with an argument of its own call.
  void release_dead(const Node& node, int32_t index) {
    if (keep_all_) return;
    for_each_argument(node, [&](Value v) {
      if (last_read_[v.id] != index || registers_[v.id] < 0) return;
      free_.push_back(registers_[v.id]);
      registers_[v.id] = -1;
      last_read_[v.id] = no_node;
    });
  }

  void mark_last_outputs() {
    std::vector<bool> seen(interpreter_.register_count_);
    for (auto slot = interpreter_.outputs_.rbegin(); slot != interpreter_.outputs_.rend(); ++slot) {
      if (slot->index < 0 || seen[slot->index]) continue;
      seen[slot->index] = slot->last = true;
    }
  }

  const Graph& graph_;
  const MakeCall& own_;
  const bool keep_all_;
  Interpreter& interpreter_;
  std::vector<int32_t> last_read_;
  std::vector<int32_t> registers_;  ///< of each value, -1 while it has none
  std::vector<at::Tensor> constants_;
  std::vector<int32_t> free_, value_in_;
};

Interpreter::Interpreter(const Graph& graph, Lifetime lifetime, const MakeCall& own) {
  Builder(graph, lifetime, own, *this).build();
}

template <class After>
Tensors Interpreter::interpret(Tensors&& inputs, After&& after) const {
  if (inputs.size() != inputs_.size())
    throw ContractError("the graph takes " + std::to_string(inputs_.size()) + " inputs and was given " +
                        std::to_string(inputs.size()) + "; pass one tensor for each");
  c10::SmallVector<at::Tensor, 32> file(register_count_);
  at::Tensor* registers = file.data();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs_[i] >= 0) registers[inputs_[i]] = std::move(inputs[i]);
  inputs.clear();

  at::AutoDispatchBelowADInplaceOrView below_autograd;
  torch::jit::Stack stack;
  for (size_t i = 0; i < calls_.size(); ++i) {
    calls_[i]->run(registers, stack);
    after(i, registers);
  }

  Tensors outputs;
  outputs.reserve(outputs_.size());
  // A constant is shared by all runs and the caller may write what it is given.
  for (const TensorSlot& slot : outputs_)
    outputs.push_back(slot.bound.defined() ? slot.bound.clone() : slot.take(registers));
  return outputs;
}

Tensors Interpreter::run(Tensors&& inputs) const {
  return interpret(std::move(inputs), [](size_t, const at::Tensor*) {});
}

Tensors Interpreter::run(Tensors&& inputs,
                         const std::function<void(size_t, const at::Tensor*)>& after) const {
  return interpret(std::move(inputs), after);
}

Tensors Graph::run(Tensors&& inputs) const { return Interpreter(*this).run(std::move(inputs)); }

}  // namespace tandem
