// How writes of a recorded graph become new values.
#include <tandem/build.h>

#include "aot/functionalizer.h"
#include "aot/write_order.h"
#include "base/verdicts.h"
#include "graph/geometry.h"
#include "ops/facts.h"

namespace tandem {

void Functionalizer::rewrite(const Node& node) {
  phase_ = node.phase;
  rewritten_ = &node;
  if (node.writes.empty()) return copy_node(node);
  if (facts(node.op).changes_metadata) return rewrite_metadata_write(node);
  rewrite_data_write(node);
}

void Functionalizer::copy_node(const Node& node) {
  Node copy = node;
  map_arguments(copy, [&](Value v) { return read(v); });
  for_each_result(copy, [&](Value made) { define(made); });
  emit(std::move(copy));
}

void Functionalizer::define(Value made) {
  begin_storage(made);
  current_[made.id] = made;
  stamp_[made.id] = memory(made).version;
  const ViewLink& link = links_[made.id];
  if (!link.parent) return;
  Value parent = current_[link.parent.id];
  graph_.meta(made).storage = graph_.meta(parent).storage;
  graph_.meta(made).offset += graph_.meta(parent).offset - trace_.meta(link.parent).offset;
}

void Functionalizer::rewrite_metadata_write(const Node& node) {
  if (node.writes.size() == 1 && node.writes[0].first == node.writes[0].second) return;
  auto twin = functional_twin(node.op);
  if (!twin || node.writes.size() != 1 ||
      trace_.meta(node.writes[0].first).storage != trace_.meta(node.writes[0].second).storage)
    throw RunEagerly(full_name(node.op) + " replaces or resizes the memory of a tensor");
  Node view{*twin};
  view.arguments = node.arguments;
  view.phase = node.phase;
  view.location = node.location;
  for (Operand& argument : view.arguments) map_values(argument, [&](Value v) { return read(v); });
  view.results = {node.writes[0].second};
  define(node.writes[0].second);
  emit(std::move(view));
}

bool Functionalizer::is_product(const c10::OperatorHandle& op) {
  auto twin = functional_twin(op);
  return facts(twin ? *twin : op).kind == Kind::Matmul;
}

void Functionalizer::rewrite_data_write(const Node& node) {
  for (const auto& [before, after] : node.writes) {
    if (after != before && trace_.meta(after).storage != trace_.meta(before).storage &&
        memory(before).of_input)
      throw RunEagerly(full_name(node.op) + " resizes an input");
    if (!is_surely_injective(trace_.meta(before)))
      throw RunEagerly(full_name(node.op) + " writes a view that holds one element in several places");
    if ((is_product(node.op) || facts(node.op).random) && !is_dense(trace_.meta(before)))
      throw RunEagerly(full_name(node.op) +
                       " writes memory with gaps, where it rounds or draws otherwise than elsewhere");
    if (phase_ == Phase::Backward && memory(before).of_input)
      throw RunEagerly("the backward writes an input (" + full_name(node.op) + ")");
  }
  if (reads_what_it_writes(trace_, node))
    throw RunEagerly(full_name(node.op) + " reads memory that it writes");
  if (!rewrite_copy(node) && !rewrite_as_twin(node)) rewrite_on_clones(node);
}

bool Functionalizer::rewrite_copy(const Node& node) {
  if (node.op.schema().name() != "aten::copy_" || node.writes[0].first != node.writes[0].second) return false;
  Value target = node.writes[0].first;
  if (!std::holds_alternative<Value>(node.arguments[1])) {  // a number
    commit(target, call("aten::copy", {read(target), node.arguments[1], node.arguments[2]}));
    return true;
  }
  Value source = read(std::get<Value>(node.arguments[1]));
  const TensorMeta &wanted = trace_.meta(target), &given = graph_.meta(source);
  bool same = wanted.sizes == given.sizes && wanted.dtype == given.dtype && wanted.device == given.device &&
              same_strides(wanted, given) && is_dense(given) && !given.conj && !given.neg && !wanted.conj &&
              !wanted.neg;
  commit(target, same ? call("aten::clone", {source})
                      : call("aten::copy", {read(target), source, node.arguments[2]}));
  return true;
}

bool Functionalizer::rewrite_as_twin(const Node& node) {
  auto twin = functional_twin(node.op);
  const OpFacts& known = facts(node.op);
  if (!twin || known.random || !known.hidden_writes.empty() || known.written.size() != 1) return false;
  for (const auto& [before, after] : node.writes)
    if (before != after) return false;
  std::vector<Operand> arguments = node.arguments;
  for (Operand& argument : arguments)
    map_values(argument, [&](Value v) {
      const Value known = read(v);
      factory_results_.erase(known.id);
      return known;
    });
  std::vector<Value> old;
  for (const auto& [before, after] : node.writes) old.push_back(read(before));
  std::vector<Value> results;
  Node& made = append_call(graph_, *twin, std::move(arguments), phase_);
  made.location = node.location;
  for_each_result(made, [&](Value v) { results.push_back(v); });
  if (results.size() == node.writes.size() && computes_in_another_layout(results, node)) {
    graph_.nodes().pop_back();
    return false;
  }
  if (results.size() != node.writes.size())
    throw Error(full_name(*twin) + " returns other tensors than " + full_name(node.op) + " writes");
  for (size_t i = 0; i < results.size(); ++i)
    commit(node.writes[i].first, fit(results[i], node.writes[i].first, old[i]));
  return true;
}

bool Functionalizer::computes_in_another_layout(const std::vector<Value>& results, const Node& node) const {
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorMeta &made = graph_.meta(results[i]), &wanted = trace_.meta(node.writes[i].first);
    if (made.dtype != wanted.dtype && facts(node.op).kind != Kind::Pointwise) return true;
    if (is_dense(wanted) && (made.sizes != wanted.sizes || !same_strides(made, wanted))) return true;
  }
  return false;
}

void Functionalizer::rewrite_on_clones(const Node& node) {
  Node copy = node;
  copy.writes.clear();
  std::vector<std::pair<Value, Value>> cloned;
  std::vector<Value> old;
  for (const auto& [before, after] : node.writes) {
    old.push_back(read(before));
    Value target = writable(old.back(), node, before);
    // A copy of memory with gaps is dense, and so is what is written there.
    Value written = graph_.add_value(before == after ? graph_.meta(target) : trace_.meta(after));
    graph_.meta(written).storage = graph_.meta(target).storage;
    graph_.meta(written).offset = graph_.meta(target).offset;
    copy.writes.emplace_back(target, written);
    cloned.emplace_back(before, target);
  }
  for (size_t a = 0; a < copy.arguments.size(); ++a) {
    const auto& known = facts(node.op).written;
    bool is_target = std::find(known.begin(), known.end(), int(a)) != known.end();
    map_values(copy.arguments[a], [&](Value v) {
      auto clone = std::find_if(cloned.begin(), cloned.end(),
                                [&](const auto& c) { return is_target && c.first == v; });
      return clone != cloned.end() ? clone->second : read(v);
    });
  }
  for (const Operand& result : copy.results) for_each_value(result, [&](Value made) { define(made); });
  if (copy.state) copy.state = read(copy.state);
  if (copy.next_state) define(copy.next_state);
  auto writes = copy.writes;
  emit(std::move(copy));
  for (size_t i = 0; i < writes.size(); ++i) {
    auto [before, after] = node.writes[i];
    if (before == after) {
      commit(before, fit(writes[i].second, before, old[i]));
    } else {
      begin_storage(after);
      memory(after).base = after;
      commit(after, writes[i].second);
    }
  }
}

Value Functionalizer::writable(Value value, const Node& writer, Value target) {
  size_t mentions = 0;
  for_each_argument(writer, [&](Value v) { mentions += v == target; });
  bool fresh = factory_results_.erase(value.id) > 0 && mentions == 1;
  return fresh ? value : call("aten::clone", {value});
}

Value Functionalizer::fit(Value made, Value target, Value old) {
  const TensorMeta& wanted = trace_.meta(target);
  const TensorMeta& got = graph_.meta(made);
  // Strides of dimensions of one element address nothing, but kernels look at them when they choose the
  // layout of a result.
  if (got.dtype == wanted.dtype && got.sizes == wanted.sizes && same_strides(got, wanted))
    return got.strides == wanted.strides ? made : strided(made, wanted, 0);
  return call("aten::copy", {old, made, c10::IValue(false)});
}

void Functionalizer::commit(Value target, Value made) {
  Memory& m = memory(target);
  m.writer = rewritten_;
  const TensorMeta &view = trace_.meta(target), &base = trace_.meta(m.base);
  if (same_geometry(view, base)) {
    m.content = made;
  } else if (is_dense(view) && is_dense(base) && view.numel() == base.numel() && view.offset == base.offset &&
             view.dtype == base.dtype) {
    m.content = strided(made, base, 0);
  } else if (view.dtype != base.dtype) {
    throw RunEagerly("a write through a view of another dtype");
  } else if (!within(base, view)) {
    throw RunEagerly("the function writes memory around a tensor");
  } else {
    Value old = away_from_inputs(m.content);
    int64_t begin = graph_.meta(old).offset + view.offset - base.offset;
    if (memory_of_input(old)) {
      reads_offsets_ = true;
      // libtorch's own scatter takes such a tensor only from where nobody differentiates.
      if (trace_.meta(m.base).requires_grad)
        throw RunEagerly(
            "a part is written of an input that requires grad and has gaps between its elements");
    }
    m.content = call("aten::as_strided_scatter",
                     {old, made, dims(view.sizes), dims(view.strides), c10::IValue(begin)});
  }
  ++m.version;
}

void Functionalizer::copy_back(Value input) {
  Value contents = read(input);
  if (contents == input) return;
  TensorMeta meta = trace_.meta(input);
  Node node{find_op("aten::copy_")};
  node.arguments = {input, contents, c10::IValue(false)};
  node.results = {Value{}};
  Value after = graph_.add_value(std::move(meta));
  node.writes = {{input, after}};
  if (memory(input).writer) node.location = memory(input).writer->location;
  emit(std::move(node));
  // What the backward reads of it is the input itself, which outlives the call anyway.
  Memory& m = memory(input);
  if (same_geometry(trace_.meta(m.base), trace_.meta(input))) m.content = after;
  ++m.version;
  current_[input.id] = after;
  stamp_[input.id] = m.version;
}

Value Functionalizer::private_copy(Value value) {
  if (!value) return value;
  int32_t storage = graph_.meta(value).storage;
  bool constant = std::any_of(graph_.constants().begin(), graph_.constants().end(),
                              [&](const auto& c) { return graph_.meta(c.first).storage == storage; });
  bool owned = constant || (size_t(storage) < memory_.size() && memory_[storage].of_input);
  if (!owned && output_storages_.insert(storage).second) return value;
  Value copy = call("aten::clone", {value});
  output_storages_.insert(graph_.meta(copy).storage);
  return copy;
}

}  // namespace tandem
