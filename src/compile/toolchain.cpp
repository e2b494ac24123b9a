#include "compile/toolchain.h"

#include <ATen/Parallel.h>
#include <tandem/error.h>

#include "base/counters.h"
#include "base/verdicts.h"
#include "compile/guarded.h"
#include "key/named_code.h"

namespace tandem {
namespace {

constexpr const char* names[] = {"joint", "forward", "backward", "inference"};  ///< of stages

/// The accelerator that a graph has to do with, where there is one.
c10::Device device_of(const Graph& graph) {
  c10::Device device = c10::kCPU;
  auto note = [&](Value value) {
    if (value && device.is_cpu()) device = graph.meta(value).device;
  };
  for (Value input : graph.inputs()) note(input);
  for (Value output : graph.outputs()) note(output);
  return device;
}

}  // namespace

Toolchain::Toolchain(const Options& options, const Roles& roles, size_t function, size_t signature)
    : options_(options),
      roles_(roles),
      function_(function),
      signature_(signature),
      threads_(at::get_num_threads()) {}

bool Toolchain::is_of_own_compiler(Stage stage) const { return own_compiler(options_, stage) != nullptr; }

void Toolchain::refuse_states(const Graph& graph, Stage stage) const {
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(),
                   [](const Node& node) { return bool(node.state); }))
    return;
  if (is_of_own_compiler(stage) || !find_backend(options_.backend)->draws_from_states())
    throw RunEagerly(
        "it draws random numbers again from a state of the generator, which its compiler or backend does not "
        "say that it can (Backend::draws_from_states)");
}

CompileContext Toolchain::context_of(const Graph& graph, const CodePlace& place) const {
  CompileContext context;
  context.stage = place.stage;
  context.graph_id = function_;
  context.signature = signature_;
  context.order = place.order;
  context.variant = place.variant;
  context.name = options_.name.empty() ? "function " + std::to_string(function_) : options_.name;
  context.contract = contract_of(roles_);
  context.device = device_of(graph);
  context.static_inputs = place.static_inputs;
  context.donated_inputs = place.donated_inputs;
  context.first_tangent = std::min(place.first_tangent, graph.inputs().size());
  context.example.reserve(graph.inputs().size());
  for (Value input : graph.inputs()) context.example.push_back(graph.meta(input));
  context.threads = threads_;
  context.options = &options_;
  return context;
}

Sight Toolchain::sight(const char* what, size_t order, size_t variant) const {
  return {options_.name, what, function_, signature_, order, variant};
}

std::shared_ptr<Executable> Toolchain::checked(std::shared_ptr<Executable> code, const Graph& graph,
                                               const CompileContext& context) const {
  if (!code) throw Error("the compiler of " + context.name + " returned no executable");
  observe(sight(names[size_t(context.stage)], context.order, context.variant), *code);
  const Compiler* own = own_compiler(options_, context.stage);
  return guarded(std::move(code), graph,
                 !own                ? "backend " + options_.backend
                 : own->name.empty() ? "the compiler of " + context.name
                                     : "compiler " + own->name);
}

std::shared_ptr<Executable> Toolchain::compile(const Graph& graph, const CodePlace& place) const {
  static constexpr const char* counters[] = {"", "compile_forward", "compile_backward", "compile_inference"};
  count(place.order > 1 ? "compile_higher_order" : counters[size_t(place.stage)]);
  observe(sight(names[size_t(place.stage)], place.order, place.variant), graph);
  const CompileContext context = context_of(graph, place);
  const Compiler* own = own_compiler(options_, place.stage);
  return checked(own ? (*own)(graph, context) : find_backend(options_.backend)->compile(graph, context),
                 graph, context);
}

std::shared_ptr<Executable> Toolchain::load(const std::string* bytes, const Graph& graph,
                                            const CodePlace& place) const {
  if (is_of_own_compiler(place.stage)) return compile(graph, place);
  if (!bytes) throw Error("its code is not there");
  observe(sight(names[size_t(place.stage)], place.order, place.variant), graph);
  const CompileContext context = context_of(graph, place);
  auto code = find_backend(options_.backend)->load({bytes->begin(), bytes->end()}, graph, context);
  if (!code) throw Error("backend " + options_.backend + " cannot load its code");
  return checked(std::move(code), graph, context);
}

}  // namespace tandem
