#include "aot/functionalize.h"

#include <tandem/build.h>

#include "aot/functionalizer.h"
#include "base/verdicts.h"
#include "graph/geometry.h"
#include "ops/facts.h"

namespace tandem {

Functionalizer::Functionalizer(const FunctionalRequest& request)
    : request_(request),
      trace_(request.trace),
      links_(find_views(trace_)),
      current_(trace_.value_count()),
      stamp_(trace_.value_count(), 0) {
  for (size_t id = 0; id < trace_.value_count(); ++id) {
    graph_.add_value(trace_.meta(Value{int32_t(id)}));
    current_[id] = Value{int32_t(id)};
  }
  memory_.resize(graph_.fresh_storage());
  graph_.set_inputs(trace_.inputs());
  graph_.constants() = trace_.constants();
  for (Value input : trace_.inputs()) {
    begin_storage(input);
    memory_[trace_.meta(input).storage].of_input = true;
  }
  for (const auto& [constant, data] : trace_.constants()) begin_storage(constant);
}

FunctionalGraph Functionalizer::run() {
  std::vector<Value> outputs;
  for (size_t n = 0; n < request_.forward_nodes; ++n) rewrite(trace_.nodes()[n]);
  for (Value output : request_.forward_outputs)
    outputs.push_back(private_copy(output ? read(output) : output));
  for (Value input : request_.kept_writes) copy_back(input);
  phase_ = Phase::Backward;
  for (size_t n = request_.forward_nodes; n < trace_.nodes().size(); ++n) rewrite(trace_.nodes()[n]);
  for (Value gradient : request_.gradients) outputs.push_back(gradient ? read(gradient) : gradient);
  graph_.set_outputs(std::move(outputs));
  return {std::move(graph_), reads_offsets_};
}

void Functionalizer::begin_storage(Value value) {
  Memory& m = memory(value);
  if (!m.base) m.base = m.content = value;
}

Value Functionalizer::read(Value value) {
  Memory& m = memory(value);
  if (stamp_[value.id] == m.version) return current_[value.id];
  stamp_[value.id] = m.version;
  return current_[value.id] = rebuild(value, m);
}

Value Functionalizer::rebuild(Value value, const Memory& m) {
  if (value == m.base || same_geometry(trace_.meta(value), trace_.meta(m.base))) return m.content;
  const ViewLink& link = links_[value.id];
  // as_strided counts from the beginning of the storage, which is another one now.
  if (link.parent && read_only(trace_.nodes()[link.node]) &&
      !facts(trace_.nodes()[link.node].op).counts_from_storage)
    return replay_view(value, link);
  const TensorMeta &view = trace_.meta(value), &base = trace_.meta(m.base);
  if (!within(base, view) || !same_strides(graph_.meta(m.content), base))
    throw RunEagerly("the function reads memory around a tensor that it writes");
  return strided(m.content, view, view.offset - base.offset);
}

bool Functionalizer::within(const TensorMeta& base, const TensorMeta& view) {
  auto [begin, end] = byte_range(placement_of(view));
  auto [first, last] = byte_range(placement_of(base));
  return begin == end || (first <= begin && end <= last);
}

Value Functionalizer::replay_view(Value value, const ViewLink& link) {
  const Node& made_by = trace_.nodes()[link.node];
  Value parent = read(link.parent);
  Node node{made_by.writes.empty() ? made_by.op : *functional_twin(made_by.op)};
  node.arguments = made_by.arguments;
  node.phase = phase_;
  node.location = made_by.location;
  for (Operand& argument : node.arguments)
    map_values(argument, [&](Value v) { return v == link.parent ? parent : read(v); });
  Value rebuilt;
  size_t position = 0;
  auto again = [&](Value old) {
    TensorMeta meta = trace_.meta(old);
    meta.offset += graph_.meta(parent).offset - trace_.meta(link.parent).offset;
    meta.storage = graph_.meta(parent).storage;
    Value made = graph_.add_value(std::move(meta));
    if (position++ == link.result) rebuilt = made;
    return made;
  };
  if (made_by.writes.empty()) {
    node.results = made_by.results;
    for (Operand& result : node.results) map_values(result, again);
  } else {
    node.results = {again(value)};
  }
  emit(std::move(node));
  return rebuilt;
}

Value Functionalizer::strided(Value content, const TensorMeta& meta, int64_t offset) {
  content = away_from_inputs(content);
  int64_t begin = graph_.meta(content).offset + offset;
  return call("aten::as_strided", {content, dims(meta.sizes), dims(meta.strides), c10::IValue(begin)});
}

Value Functionalizer::away_from_inputs(Value value) {
  int32_t storage = graph_.meta(value).storage;
  if (size_t(storage) >= memory_.size() || !memory_[storage].of_input) return value;
  if (!is_dense(graph_.meta(value))) return value;
  return call("aten::clone", {value});
}

Value Functionalizer::call(const char* name, std::vector<Operand> arguments) {
  for (const Operand& argument : arguments)
    for_each_value(argument, [&](Value v) { factory_results_.erase(v.id); });
  Node& node = append_call(graph_, find_op(name), std::move(arguments), phase_);
  if (rewritten_) node.location = rewritten_->location;
  return std::get<Value>(node.results[0]);
}

void Functionalizer::emit(Node node) {
  bool has_tensor_argument = false;
  for_each_argument(node, [&](Value v) {
    has_tensor_argument = true;
    factory_results_.erase(v.id);
    if (facts(node.op).counts_from_storage && memory_of_input(v)) reads_offsets_ = true;
  });
  if (!has_tensor_argument)
    for (const Operand& result : node.results)
      for_each_value(result, [&](Value made) { factory_results_.insert(made.id); });
  graph_.add_node(std::move(node));
}

bool Functionalizer::memory_of_input(Value value) const {
  int32_t storage = graph_.meta(value).storage;
  return size_t(storage) < memory_.size() && memory_[storage].of_input;
}

FunctionalGraph functionalize(const FunctionalRequest& request) { return Functionalizer(request).run(); }

}  // namespace tandem
