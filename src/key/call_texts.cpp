#include "key/call_texts.h"

#include "base/sha256.h"
#include "graph/bytes.h"
#include "graph/vocabulary.h"
#include "ops/facts.h"

namespace tandem {
namespace {

void append(std::string& to, Value value) { value ? append_number(to += '%', value.id) : void(to += "none"); }

void append_geometry(std::string& to, const TensorMeta& meta) {
  to += dtype_word(meta.dtype);
  append_dims(to, meta.sizes);
  append_dims(to += " strides ", meta.strides);
  append_number(to += " offset ", meta.offset);
  append_number(to += " storage ", meta.storage);
  (to += ' ') += meta.device.str();
}

/// Flags that are set, by name.
using Flags = std::initializer_list<std::pair<const char*, bool>>;
void append_words(std::string& to, Flags flags) {
  for (const auto& [word, set] : flags)
    if (set) (to += ", ") += word;
}

/// A call on nothing but constants, printed as part of a graph that has no values.
std::string text(const ViewStep& step) {
  const auto& [op, arguments, base_argument, result] = step;
  return to_string(Graph(), Node{op, arguments, {}, {}, Phase::Forward, {}}) + " of argument " +
         std::to_string(base_argument) + " result " + std::to_string(result);
}

void append(std::string& to, const std::vector<ViewStep>& steps) {
  for (const ViewStep& step : steps) to += "\n  by " + text(step);
}

void append(std::string& to, const char* what, const std::optional<size_t>& number) {
  if (number) append_number(((to += ", ") += what) += ' ', int64_t(*number));
}

// A field that is added to a role does not compile until it is placed here.
void append(std::string& to, const InputRole& role) {
  const auto& [value, name, captured, stays, requires_grad, data_written, metadata_written, write_kept,
               write_recorded, starts_requiring_grad, retains_grad, metadata_steps, versions, view_of,
               returned] = role;
  append(to += "input ", value);
  append_number(to += ", versions ", int64_t(versions));
  append_words(to, {{"captured", captured},
                    {"stays", stays},
                    {"requires grad", requires_grad},
                    {"data written", data_written},
                    {"metadata written", metadata_written},
                    {"write kept", write_kept},
                    {"write recorded", write_recorded},
                    {"starts requiring grad", starts_requiring_grad},
                    {"retains grad", retains_grad}});
  append(to, "view of input", view_of);
  append_number(to += ", returned as ", int64_t(returned));
  append(to, metadata_steps);
  to += '\n';
}

void append(std::string& to, const OutputRole& role) {
  static constexpr const char* sources[] = {"fresh", "input", "view of input", "view of output", "none"};
  const auto& [value, source, base, steps, same_as, requires_grad, retains_grad, tracked, made_as,
               differentiable] = role;
  append(to += "output ", value);
  append_number(((to += ", ") += sources[size_t(source)]) += ' ', int64_t(base));
  append_words(to, {{"requires grad", requires_grad},
                    {"retains grad", retains_grad},
                    {"tracked", tracked},
                    {"differentiable", differentiable}});
  append(to, "made as", made_as ? std::optional(size_t(*made_as)) : std::nullopt);
  append(to, "same as output", same_as);
  append(to, steps);
  to += '\n';
}

}  // namespace

std::string trace_text(const Graph& trace) {
  std::string out;
  for (const auto& [value, data] : trace.constants()) {
    append(out += "constant ", value);
    append_geometry(out += ": ", trace.meta(value));
    out += " = " + (data.defined() ? "sha256 " + sha256(element_bytes(data)) : "none") + '\n';
  }
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
    append(out, input.value);
    append_geometry(out += ": ", trace.meta(input.value));
    append_words(out, {{"captured", input.captured},
                       {"requires grad", requires_grad},
                       {"leaf", requires_grad && input.real.is_leaf()},
                       {"inference", input.real.is_inference()},
                       {"conj", trace.meta(input.value).conj},
                       {"neg", trace.meta(input.value).neg}});
    out += '\n';
  }
  for (size_t a = 0; a < traced.arguments.size(); ++a) {
    size_t i = 0;
    while (i < inputs.size() && !inputs[i].visible.is_same(traced.arguments[a])) ++i;
    append_number(out += "argument ", int64_t(a));
    append(out += " is ", i < inputs.size() ? inputs[i].value : Value{});
    out += '\n';
  }
  return out;
}

std::string contract_text(const Plan& plan) {
  const auto& [inputs, outputs, tangents] = plan.roles;
  std::string out;
  for (const InputRole& role : inputs) append(out, role);
  for (const OutputRole& role : outputs) append(out, role);
  out += "tangents";
  for (Value tangent : tangents) append(out += ' ', tangent);
  return out + "\nreturned " + std::to_string(plan.returned.size()) + '\n';
}

}  // namespace tandem
