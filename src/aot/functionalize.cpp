#include "aot/functionalize.h"

#include <tandem/build.h>
#include <unordered_set>

#include "aot/views.h"
#include "aot/write_order.h"
#include "graph/geometry.h"
#include "ops/facts.h"
#include "trace/tracer.h"

namespace tandem {
namespace {

c10::IValue dims(const Dims& sizes) { return c10::IValue(std::vector<int64_t>(sizes.begin(), sizes.end())); }

class Functionalizer {
 public:
  explicit Functionalizer(const FunctionalRequest& request)
      : request_(request), trace_(request.trace), links_(find_views(trace_)), current_(trace_.value_count()), stamp_(trace_.value_count(), 0) {
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

  FunctionalGraph run() {
    std::vector<Value> outputs;
    for (size_t n = 0; n < request_.forward_nodes; ++n) rewrite(trace_.nodes()[n]);
    for (Value output : request_.forward_outputs) outputs.push_back(private_copy(output ? read(output) : output));
    for (Value input : request_.kept_writes) copy_back(input);
    phase_ = Phase::Backward;
    for (size_t n = request_.forward_nodes; n < trace_.nodes().size(); ++n) rewrite(trace_.nodes()[n]);
    for (Value gradient : request_.gradients) outputs.push_back(gradient ? read(gradient) : gradient);
    graph_.set_outputs(std::move(outputs));
    return {std::move(graph_), reads_offsets_};
  }

 private:
  /// What one storage holds now.
  struct Memory {
    Value base;                 ///< the first value on it: its geometry is the one that `content` keeps
    Value content;
    uint32_t version = 0;
    bool of_input = false;
    const Node* writer = nullptr;   ///< the last one
  };

  Memory& memory(Value value) { return memory_[trace_.meta(value).storage]; }

  void begin_storage(Value value) {
    Memory& m = memory(value);
    if (!m.base) m.base = m.content = value;
  }

  // ---- reading

  /// The value that reading `value` gives now.
  Value read(Value value) {
    Memory& m = memory(value);
    if (stamp_[value.id] == m.version) return current_[value.id];
    stamp_[value.id] = m.version;
    return current_[value.id] = rebuild(value, m);
  }

  Value rebuild(Value value, const Memory& m) {
    if (value == m.base || same_geometry(trace_.meta(value), trace_.meta(m.base))) return m.content;
    const ViewLink& link = links_[value.id];
    // as_strided counts from the beginning of the storage, which is another one now.
    if (link.parent && read_only(trace_.nodes()[link.node]) && !is_strided_by_offset(trace_.nodes()[link.node].op)) return replay_view(value, link);
    const TensorMeta &view = trace_.meta(value), &base = trace_.meta(m.base);
    if (!within(base, view) || !same_strides(graph_.meta(m.content), base)) throw RunEagerly("the function reads memory around a tensor that it writes");
    return strided(m.content, view, view.offset - base.offset);
  }

  /// Whether a view lies between the first and the last element of its base.
  static bool within(const TensorMeta& base, const TensorMeta& view) {
    auto [begin, end] = byte_range(placement_of(view));
    auto [first, last] = byte_range(placement_of(base));
    return begin == end || (first <= begin && end <= last);
  }

  static bool read_only(const Node& node) { return node.writes.empty() || functional_twin(node.op).has_value(); }

  Value replay_view(Value value, const ViewLink& link) {
    const Node& made_by = trace_.nodes()[link.node];
    Value parent = read(link.parent);
    Node node{made_by.writes.empty() ? made_by.op : *functional_twin(made_by.op)};
    node.arguments = made_by.arguments;
    node.phase = phase_;
    node.location = made_by.location;
    for (Operand& argument : node.arguments) map_values(argument, [&](Value v) { return v == link.parent ? parent : read(v); });
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

  /// A view of `content` with the geometry of `meta`, `offset` elements after where `content` begins.
  Value strided(Value content, const TensorMeta& meta, int64_t offset) {
    content = away_from_inputs(content);
    int64_t begin = graph_.meta(content).offset + offset;
    return call("aten::as_strided", {content, dims(meta.sizes), dims(meta.strides), c10::IValue(begin)});
  }

  /// Where an input begins in its storage differs from call to call, so nothing with an absolute offset may be made of it.
  Value away_from_inputs(Value value) {
    int32_t storage = graph_.meta(value).storage;
    if (size_t(storage) >= memory_.size() || !memory_[storage].of_input) return value;
    if (!is_dense(graph_.meta(value))) return value;
    return call("aten::clone", {value});
  }

  // ---- writing

  void rewrite(const Node& node) {
    phase_ = node.phase;
    rewritten_ = &node;
    if (node.writes.empty()) return copy_node(node);
    if (facts(node.op).changes_metadata) return rewrite_metadata_write(node);
    rewrite_data_write(node);
  }

  void copy_node(const Node& node) {
    Node copy = node;
    for (Operand& argument : copy.arguments) map_values(argument, [&](Value v) { return read(v); });
    for_each_result(copy, [&](Value made) { define(made); });
    emit(std::move(copy));
  }

  void define(Value made) {
    begin_storage(made);
    current_[made.id] = made;
    stamp_[made.id] = memory(made).version;
    const ViewLink& link = links_[made.id];
    if (!link.parent) return;
    Value parent = current_[link.parent.id];
    graph_.meta(made).storage = graph_.meta(parent).storage;
    graph_.meta(made).offset += graph_.meta(parent).offset - trace_.meta(link.parent).offset;
  }

  /// `x.t_()` gives x the geometry of `x.t()`.
  void rewrite_metadata_write(const Node& node) {
    if (node.writes.size() == 1 && node.writes[0].first == node.writes[0].second) return;
    auto twin = functional_twin(node.op);
    if (!twin || node.writes.size() != 1 || trace_.meta(node.writes[0].first).storage != trace_.meta(node.writes[0].second).storage)
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

  static bool is_product(const c10::OperatorHandle& op) {
    auto twin = functional_twin(op);
    return facts(twin ? *twin : op).kind == Kind::Matmul;
  }

  void rewrite_data_write(const Node& node) {
    for (const auto& [before, after] : node.writes) {
      if (after != before && trace_.meta(after).storage != trace_.meta(before).storage && memory(before).of_input)
        throw RunEagerly(full_name(node.op) + " resizes an input");
      if (!is_surely_injective(trace_.meta(before))) throw RunEagerly(full_name(node.op) + " writes a view that holds one element in several places");
      if ((is_product(node.op) || facts(node.op).random) && !is_dense(trace_.meta(before)))
        throw RunEagerly(full_name(node.op) + " writes memory with gaps, where it rounds or draws otherwise than elsewhere");
      if (phase_ == Phase::Backward && memory(before).of_input) throw RunEagerly("the backward writes an input (" + full_name(node.op) + ")");
    }
    if (reads_what_it_writes(trace_, node)) throw RunEagerly(full_name(node.op) + " reads memory that it writes");
    if (!rewrite_copy(node) && !rewrite_as_twin(node)) rewrite_on_clones(node);
  }

  bool rewrite_copy(const Node& node) {
    if (node.op.schema().name() != "aten::copy_" || node.writes[0].first != node.writes[0].second) return false;
    Value target = node.writes[0].first;
    if (!std::holds_alternative<Value>(node.arguments[1])) {                // a number
      commit(target, call("aten::copy", {read(target), node.arguments[1], node.arguments[2]}));
      return true;
    }
    Value source = read(std::get<Value>(node.arguments[1]));
    const TensorMeta &wanted = trace_.meta(target), &given = graph_.meta(source);
    bool same = wanted.sizes == given.sizes && wanted.dtype == given.dtype && wanted.device == given.device && same_strides(wanted, given) &&
                is_dense(given) && !given.conj && !given.neg && !wanted.conj && !wanted.neg;
    commit(target, same ? call("aten::clone", {source}) : call("aten::copy", {read(target), source, node.arguments[2]}));
    return true;
  }

  bool rewrite_as_twin(const Node& node) {
    auto twin = functional_twin(node.op);
    const OpFacts& known = facts(node.op);
    if (!twin || known.random || !known.hidden_writes.empty() || known.written.size() != 1) return false;
    for (const auto& [before, after] : node.writes)
      if (before != after) return false;
    std::vector<Operand> arguments = node.arguments;
    for (Operand& argument : arguments) map_values(argument, [&](Value v) { return read(v); });
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
    if (results.size() != node.writes.size()) throw Error(full_name(*twin) + " returns other tensors than " + full_name(node.op) + " writes");
    for (size_t i = 0; i < results.size(); ++i) commit(node.writes[i].first, fit(results[i], node.writes[i].first, old[i]));
    return true;
  }

  /// Kernels such as matrix products round differently for another layout of the result, and some refuse a dtype only where they write in place.
  bool computes_in_another_layout(const std::vector<Value>& results, const Node& node) const {
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorMeta &made = graph_.meta(results[i]), &wanted = trace_.meta(node.writes[i].first);
      if (made.dtype != wanted.dtype && facts(node.op).kind != Kind::Pointwise) return true;
      if (is_dense(wanted) && (made.sizes != wanted.sizes || !same_strides(made, wanted))) return true;
    }
    return false;
  }

  /// The operator itself, on copies that nothing else reads.
  void rewrite_on_clones(const Node& node) {
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
        auto clone = std::find_if(cloned.begin(), cloned.end(), [&](const auto& c) { return is_target && c.first == v; });
        return clone != cloned.end() ? clone->second : read(v);
      });
    }
    for (const Operand& result : copy.results) for_each_value(result, [&](Value made) { define(made); });
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

  /// A fresh tensor that nothing has read yet, nor does the operator that writes it, may be written as it is.
  Value writable(Value value, const Node& writer, Value target) {
    size_t mentions = 0;
    for_each_argument(writer, [&](Value v) { mentions += v == target; });
    bool fresh = factory_results_.erase(value.id) > 0 && mentions == 1;
    return fresh ? value : call("aten::clone", {value});
  }

  /// `made` with the dtype and strides that the program sees after writing `target`.
  Value fit(Value made, Value target, Value old) {
    const TensorMeta& wanted = trace_.meta(target);
    const TensorMeta& got = graph_.meta(made);
    // Strides of dimensions of one element address nothing, but kernels look at them when they choose the layout of a result.
    if (got.dtype == wanted.dtype && got.sizes == wanted.sizes && same_strides(got, wanted)) return got.strides == wanted.strides ? made : strided(made, wanted, 0);
    return call("aten::copy", {old, made, c10::IValue(false)});
  }

  /// From now on the memory of `target` holds `made` where `target` lies.
  void commit(Value target, Value made) {
    Memory& m = memory(target);
    m.writer = rewritten_;
    const TensorMeta &view = trace_.meta(target), &base = trace_.meta(m.base);
    if (same_geometry(view, base)) {
      m.content = made;
    } else if (is_dense(view) && is_dense(base) && view.numel() == base.numel() && view.offset == base.offset && view.dtype == base.dtype) {
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
        if (trace_.meta(m.base).requires_grad) throw RunEagerly("a part is written of an input that requires grad and has gaps between its elements");
      }
      m.content = call("aten::as_strided_scatter", {old, made, dims(view.sizes), dims(view.strides), c10::IValue(begin)});
    }
    ++m.version;
  }

  void copy_back(Value input) {
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

  /// An output must not be memory that an input or another output owns.
  Value private_copy(Value value) {
    if (!value) return value;
    int32_t storage = graph_.meta(value).storage;
    bool constant = std::any_of(graph_.constants().begin(), graph_.constants().end(), [&](const auto& c) { return graph_.meta(c.first).storage == storage; });
    bool owned = constant || (size_t(storage) < memory_.size() && memory_[storage].of_input);
    if (!owned && output_storages_.insert(storage).second) return value;
    Value copy = call("aten::clone", {value});
    output_storages_.insert(graph_.meta(copy).storage);
    return copy;
  }

  // ---- emitting

  Value call(const char* name, std::vector<Operand> arguments) {
    for (const Operand& argument : arguments) for_each_value(argument, [&](Value v) { factory_results_.erase(v.id); });
    Node& node = append_call(graph_, find_op(name), std::move(arguments), phase_);
    if (rewritten_) node.location = rewritten_->location;
    return std::get<Value>(node.results[0]);
  }

  void emit(Node node) {
    bool has_tensor_argument = false;
    for_each_argument(node, [&](Value v) {
      has_tensor_argument = true;
      factory_results_.erase(v.id);
      if (is_strided_by_offset(node.op) && memory_of_input(v)) reads_offsets_ = true;
    });
    if (!has_tensor_argument)
      for (const Operand& result : node.results) for_each_value(result, [&](Value made) { factory_results_.insert(made.id); });
    graph_.add_node(std::move(node));
  }

  bool memory_of_input(Value value) const {
    int32_t storage = graph_.meta(value).storage;
    return size_t(storage) < memory_.size() && memory_[storage].of_input;
  }

  static bool is_strided_by_offset(const c10::OperatorHandle& op) { return op.schema().name().starts_with("aten::as_strided"); }

  const FunctionalRequest& request_;
  const Graph& trace_;
  const std::vector<ViewLink> links_;
  std::vector<Value> current_;               ///< of each recorded value: what holds it now
  std::vector<uint32_t> stamp_;              ///< and for which version of its memory that is true
  std::vector<Memory> memory_;
  Graph graph_;
  Phase phase_ = Phase::Forward;
  const Node* rewritten_ = nullptr;
  bool reads_offsets_ = false;
  std::unordered_set<int32_t> factory_results_;
  std::unordered_set<int32_t> output_storages_;
};

}  // namespace

FunctionalGraph functionalize(const FunctionalRequest& request) { return Functionalizer(request).run(); }

}  // namespace tandem
