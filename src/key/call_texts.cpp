#include "key/call_texts.h"

#include "base/sha256.h"
#include "graph/bytes.h"
#include "graph/vocabulary.h"
#include "ops/facts.h"

namespace tandem {
namespace {

std::string text(Value value) { return value ? '%' + std::to_string(value.id) : "none"; }

std::string geometry(const TensorMeta& meta) {
  return dtype_word(meta.dtype) + dims_word(meta.sizes) + " strides " + dims_word(meta.strides) + " offset " +
         std::to_string(meta.offset) + " storage " + std::to_string(meta.storage) + ' ' + meta.device.str();
}

/// Flags that are set, by name.
using Flags = std::initializer_list<std::pair<const char*, bool>>;
std::string words(Flags flags) {
  std::string out;
  for (const auto& [word, set] : flags)
    if (set) (out += ", ") += word;
  return out;
}

/// A call on nothing but constants, printed as part of a graph that has no values.
std::string text(const ViewStep& step) {
  const auto& [op, arguments, base_argument, result] = step;
  return to_string(Graph(), Node{op, arguments, {}, {}, Phase::Forward, {}}) + " of argument " +
         std::to_string(base_argument) + " result " + std::to_string(result);
}

std::string text(const std::vector<ViewStep>& steps) {
  std::string out;
  for (const ViewStep& step : steps) out += "\n  by " + text(step);
  return out;
}

template <class Number>
std::string text(const char* what, const std::optional<Number>& number) {
  return number ? std::string(", ") + what + ' ' + std::to_string(*number) : "";
}

// A field that is added to a role does not compile until it is placed here.
std::string text(const InputRole& role) {
  const auto& [value, name, captured, stays, requires_grad, data_written, metadata_written, write_kept,
               write_recorded, starts_requiring_grad, retains_grad, metadata_steps, versions, view_of,
               returned] = role;
  return "input " + text(value) + ", versions " + std::to_string(versions) +
         words({{"captured", captured},
                {"stays", stays},
                {"requires grad", requires_grad},
                {"data written", data_written},
                {"metadata written", metadata_written},
                {"write kept", write_kept},
                {"write recorded", write_recorded},
                {"starts requiring grad", starts_requiring_grad},
                {"retains grad", retains_grad}}) +
         text("view of input", view_of) + ", returned as " + std::to_string(returned) + text(metadata_steps) +
         '\n';
}

std::string text(const OutputRole& role) {
  static constexpr const char* sources[] = {"fresh", "input", "view of input", "view of output", "none"};
  const auto& [value, source, base, steps, same_as, requires_grad, retains_grad, tracked, differentiable] =
      role;
  return "output " + text(value) + ", " + sources[size_t(source)] + ' ' + std::to_string(base) +
         words({{"requires grad", requires_grad},
                {"retains grad", retains_grad},
                {"tracked", tracked},
                {"differentiable", differentiable}}) +
         text("same as output", same_as) + text(steps) + '\n';
}

}  // namespace

std::string trace_text(const Graph& trace) {
  std::string out;
  for (const auto& [value, data] : trace.constants())
    out += "constant " + text(value) + ": " + geometry(trace.meta(value)) + " = " +
           (data.defined() ? "sha256 " + sha256(element_bytes(data)) : "none") + '\n';
  for (const Node& node : trace.nodes()) {
    std::string line = to_string(trace, node);
    if (!node.location.empty()) line.resize(line.size() - (" @ " + in_quotes(node.location)).size());
    out += line + '\n';
  }
  return out;
}

std::string locations_text(const Graph& trace) {
  std::string out;
  for (const Node& node : trace.nodes()) out += full_name(node.op) + " @ " + node.location + '\n';
  return out;
}

std::string inputs_text(const Traced& traced) {
  std::string out;
  const Graph& trace = traced.tracer->graph();
  const auto& inputs = traced.tracer->inputs();
  for (const TracedInput& input : inputs) {
    const bool requires_grad = input.required_grad;
    out += text(input.value) + ": " + geometry(trace.meta(input.value)) +
           words({{"captured", input.captured},
                  {"requires grad", requires_grad},
                  {"leaf", requires_grad && input.real.is_leaf()},
                  {"inference", input.real.is_inference()},
                  {"conj", trace.meta(input.value).conj},
                  {"neg", trace.meta(input.value).neg}}) +
           '\n';
  }
  for (size_t a = 0; a < traced.arguments.size(); ++a) {
    size_t i = 0;
    while (i < inputs.size() && !inputs[i].visible.is_same(traced.arguments[a])) ++i;
    out += "argument " + std::to_string(a) + " is " + (i < inputs.size() ? text(inputs[i].value) : "none") +
           '\n';
  }
  return out;
}

std::string contract_text(const Plan& plan) {
  const auto& [inputs, outputs, tangents] = plan.contract;
  std::string out;
  for (const InputRole& role : inputs) out += text(role);
  for (const OutputRole& role : outputs) out += text(role);
  out += "tangents";
  for (Value tangent : tangents) out += ' ' + text(tangent);
  return out + "\nreturned " + std::to_string(plan.returned.size()) + '\n';
}

}  // namespace tandem
