#include "key/history_text.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <typeindex>

#include "base/history.h"
#include "graph/vocabulary.h"
#include "ops/versions.h"

namespace tandem {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::CopySlices;

/// What the type of a node tells about it.
struct NodeType {
  std::string name;
  bool custom = false, accumulates = false, copies_slices = false;
  bool known = false;  ///< its code is libtorch's or ours
};

const NodeType& type_of(const torch::autograd::Node& node) {
  thread_local std::unordered_map<std::type_index, NodeType> seen;
  const std::type_info& type = typeid(node);
  auto [found, fresh] = seen.try_emplace(type);
  NodeType& described = found->second;
  if (!fresh) return described;
  const std::string whole = c10::demangle(type.name());
  described.name = node_type_name(whole);
  described.custom = is_custom_function(whole);
  described.accumulates = type == typeid(AccumulateGrad);
  described.copies_slices = type == typeid(CopySlices);
  const bool python = whole == "torch::autograd::PyNode";
  described.known =
      !described.custom && !python &&
      (whole.starts_with("torch::autograd::") || whole.starts_with("tandem::(anonymous namespace)::"));
  return described;
}

class Describer {
 public:
  Describer(const Traced& traced, const Plan& plan) : tracer_(*traced.tracer), traced_(traced), plan_(plan) {}

  HistoryText run() {
    collect_ends();
    history_ = numbered_nodes_behind(ends_);
    for (size_t i = 0; i < tracer_.inputs().size(); ++i) ending_.emplace(tracer_.inputs()[i].end.get(), i);
    result_.text.reserve((ends_.size() + history_.nodes.size()) * bytes_of_a_line);
    for (size_t i = 0; i < ends_.size(); ++i) describe_end(labels_[i], ends_[i]);
    for (size_t number = 0; number < history_.nodes.size(); ++number) describe(number);
    return std::move(result_);
  }

 private:
  void collect_ends() {
    auto add = [this](const char* what, size_t index, const at::Tensor& tensor) {
      labels_.emplace_back(what, index);
      ends_.push_back(tensor);
    };
    for (size_t i = 0; i < traced_.outputs.size(); ++i) add("output", i, traced_.outputs[i]);
    for (size_t i = 0; i < tracer_.inputs().size(); ++i) add("input", i, tracer_.inputs()[i].visible);
    for (size_t i = 0; i < plan_.tangent_sources.size(); ++i) add("tangent", i, plan_.tangent_sources[i]);
    for (size_t i = 0; i < traced_.members.size(); ++i) add("member", i, traced_.members[i].fake);
  }

  void describe_end(const std::pair<const char*, size_t>& label, const at::Tensor& tensor) {
    std::string& text = result_.text;
    append_number((text += label.first) += ' ', int64_t(label.second));
    text += ": ";
    if (!tensor.defined() || !tensor.requires_grad())
      text += "no gradient";
    else if (const auto& node = tensor.grad_fn())
      append_place(*node, tensor.output_nr());
    else
      (text += "leaf ") += value(tensor);
    text += '\n';
  }

  void append_place(const torch::autograd::Node& node, uint32_t input) {
    append_number(result_.text += '#', int64_t(history_.numbers.at(&node)));
    append_number(result_.text += '.', input);
  }

  void describe(size_t number) {
    torch::autograd::Node& node = *history_.nodes[number];
    const NodeType& type = known_type_of(node);
    std::string& text = result_.text;
    append_number(text += '#', int64_t(number));
    (text += ' ') += type.name;
    if (!type.accumulates)
      append_number(text += " at ", int64_t(tracer_.recorded_before(node.sequence_nr())));
    text += " (";
    for (const auto& edge : node.next_edges()) {
      if (text.back() != '(') text += ", ";
      edge.function ? append_place(*edge.function, edge.input_nr) : void(text += "none");
    }
    text += ')';
    if (type.accumulates)
      text += " of " + value(static_cast<AccumulateGrad&>(node).variable);
    else if (auto input = ending_.find(&node); input != ending_.end())
      append_number(text += " of input ", int64_t(input->second));
    describe_contents(node, type);
    text += '\n';
    if (has_hooks(node))
      obstruct("it registers a hook on a tensor (behind " + type.name + "), whose code is unknown");
  }

  /// While the history lives, so do the types of its nodes: their addresses tell them apart.
  const NodeType& known_type_of(const torch::autograd::Node& node) {
    const NodeType*& known = types_[&typeid(node)];
    if (!known) known = &type_of(node);
    return *known;
  }

  /// What a node holds besides its edges and what the trace says about the operator that made it.
  void describe_contents(torch::autograd::Node& node, const NodeType& type) {
    if (type.copies_slices) {
      const auto& slices = static_cast<CopySlices&>(node);
      result_.text += " base " + geometry(slices.base) + " view " + geometry(slices.view);
      if (slices.fn) {
        const NodeType& inner = type_of(*slices.fn);
        result_.text += " through " + inner.name;
        describe_contents(*slices.fn, inner);
      }
    } else if (type.custom) {
      describe_custom_function(node, type);
    } else if (!type.known) {
      obstruct("its gradient goes through " + node.name() + ", whose code is unknown");
    }
  }

  void describe_custom_function(const torch::autograd::Node& node, const NodeType& type) {
    result_.has_custom_functions = true;
    const auto function = find_function(typeid(node));
    if (!function)
      return obstruct("the custom autograd function " + type.name +
                      " has no version; give it one with register_function<" + type.name + ">(\"...\")");
    result_.text += " version " + in_quotes(function->version);
    const torch::autograd::AutogradContext& context = function->context(node);
    std::map<std::string, c10::IValue> sorted(context.saved_data.begin(), context.saved_data.end());
    for (const auto& [name, data] : sorted) result_.text += ' ' + in_quotes(name) + '=' + saved(data, type);
    if (tracer_.met_saved_tensor_hooks())
      return obstruct("the custom autograd function " + type.name +
                      " is called where hooks on saved tensors are set, as in a checkpoint");
    try {
      for (const at::Tensor& tensor : context.get_saved_variables())
        result_.text += ' ' + saved(tensor, type);
    } catch (const c10::Error&) {
      // Written since; its backward will say so, as eager's does.
      result_.text += " changed";
    }
  }

  std::string saved(const at::Tensor& tensor, const NodeType& function) {
    if (!tensor.defined()) return "none";
    if (as_fake(tensor)) return value(tensor);
    for (size_t i = 0; i < tracer_.inputs().size(); ++i)
      if (tracer_.inputs()[i].real.is_same(tensor)) return "input " + std::to_string(i);
    obstruct("the custom autograd function " + function.name +
             " keeps a tensor that the traced operators do not read");
    return "?";
  }

  std::string saved(const c10::IValue& data, const NodeType& function) {
    if (data.isNone()) return "none";
    if (data.isTensor()) return saved(data.toTensor(), function);
    if (data.isString()) return in_quotes(data.toStringRef());
    if (data.isDevice()) return data.toDevice().str();
    if (auto number = number_in(data)) return scalar_word(*number);
    if (data.isList()) return saved_items(data.toListRef(), function);
    if (data.isTuple()) return saved_items(data.toTupleRef().elements(), function);
    obstruct("the custom autograd function " + function.name + " keeps a " + data.tagKind() +
             " in saved_data, which has no stable text");
    return "?";
  }

  template <class Items>
  std::string saved_items(const Items& items, const NodeType& function) {
    std::string text = "[";
    for (const c10::IValue& item : items) text += (text.size() > 1 ? ", " : "") + saved(item, function);
    return text + ']';
  }

  static std::string geometry(const at::TensorGeometry& geometry) {
    return dims_word(geometry.sizes()) + dims_word(geometry.strides()) + '+' +
           std::to_string(geometry.storage_offset());
  }

  std::string value(const at::Tensor& tensor) const {
    return as_fake(tensor) ? '%' + std::to_string(tracer_.value_of(tensor).id) : "a tensor from elsewhere";
  }

  void obstruct(std::string why) {
    if (result_.obstacle.empty()) result_.obstacle = std::move(why);
  }

  const Tracer& tracer_;
  const Traced& traced_;
  const Plan& plan_;
  static constexpr size_t bytes_of_a_line = 48;  ///< a guess

  std::vector<std::pair<const char*, size_t>> labels_;
  Tensors ends_;
  NumberedNodes history_;
  ska::flat_hash_map<const torch::autograd::Node*, size_t> ending_;  ///< the first input that ends there
  ska::flat_hash_map<const std::type_info*, const NodeType*> types_;
  HistoryText result_;
};

}  // namespace

HistoryText describe_history(const Traced& traced, const Plan& plan) { return Describer(traced, plan).run(); }

}  // namespace tandem
