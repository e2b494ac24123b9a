#include <tandem/detail/variants.h>
#include <tandem/script.h>

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/passes/autocast.h>
#include <torch/csrc/jit/passes/inline_fork_wait.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "frontend/script_call.h"
#include "trace/failure.h"
#include "trace/tracer.h"
#include "trace/watcher.h"

namespace tandem {
namespace {

using c10::IValue;

torch::jit::Method forward_of(const torch::jit::Module& module) {
  auto method = module.find_method("forward");
  if (!method)
    throw Error("compile: the script module " + module.type()->repr_str() +
                " has no method forward; compile one that has.");
  return *method;
}

/// The method with everything that it calls copied into it: calls that are left would go through
/// TorchScript's own optimiser, which merges operators.
std::shared_ptr<torch::jit::Graph> inlined(const torch::jit::Method& method) {
  auto graph = method.graph()->copy();
  torch::jit::Inline(*graph);
  torch::jit::InlineForkWait(graph);
  return graph;
}

/// The method and the module that it belongs to, for as long as some compiled code needs them.
struct Script {
  explicit Script(const torch::jit::Module& module_)
      : module(module_), method(forward_of(module)), graph(inlined(method)), attributes(module._ivalue()) {}

  const c10::FunctionSchema& schema() const { return method.function().getSchema(); }
  std::string argument_name(size_t i) const {
    return "argument '" + schema().arguments()[i + 1].name() + "' of " + schema().name();
  }

  torch::jit::Module module;
  torch::jit::Method method;
  std::shared_ptr<torch::jit::Graph> graph;
  ScriptAttributes attributes;
};

void write_arguments(const Script& script, const std::vector<IValue>& arguments, Writer& to) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (to.names) to.path = script.argument_name(i);
    write_script_value(arguments[i], to);
  }
}

/// Runs the method operator by operator. The interpreter replaces every error by a text; ours are put back.
IValue interpret(const Script& script, const std::vector<IValue>& arguments) {
  torch::jit::GraphOptimizerEnabledGuard no_optimizer(false);
  auto graph = script.graph->copy();
  torch::jit::Autocast(graph);
  torch::jit::runRequiredPasses(graph);
  torch::jit::Code code(graph, script.method.name());
  torch::jit::Stack stack{script.module._ivalue()};
  stack.insert(stack.end(), arguments.begin(), arguments.end());
  last_failure() = nullptr;
  try {
    torch::jit::InterpreterState(code).run(stack);
  } catch (...) {
    if (auto failure = std::exchange(last_failure(), nullptr)) std::rethrow_exception(failure);
    throw;
  }
  return std::move(stack.front());
}

/// Compiled code repeats what was done to tensors, not what was done to lists and attributes.
void refuse_changed_arguments(const Script& script, const std::vector<IValue>& arguments,
                              const Writer& before) {
  Writer after;
  write_arguments(script, arguments, after);
  auto same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
  if (after.rest != before.rest || !std::equal(after.tensors.begin(), after.tensors.end(),
                                               before.tensors.begin(), before.tensors.end(), same))
    throw CannotRun(script.schema().name() +
                    " changes a list or dict that it was given, which compiled code would not repeat; return "
                    "the changed one instead.");
}

IValue trace_script(const Script& script, const std::vector<IValue>& arguments) {
  Writer before;
  write_arguments(script, arguments, before);
  std::vector<IValue> attributes = script.attributes.snapshot();
  IValue result;
  try {
    result = interpret(script, arguments);
  } catch (...) {
    script.attributes.restore(attributes);
    throw;
  }
  if (std::string name = script.attributes.restore(attributes); !name.empty())
    throw KeepsState(script.schema().name() + " assigns to the attribute '" + name +
                     "', which compiled code would not repeat; change a tensor in place (" + name +
                     ".copy_(...)) instead.");
  refuse_changed_arguments(script, arguments, before);
  return result;
}

/// What `layout` says, put together from tensors.
std::vector<IValue> build_arguments(const std::vector<ScriptLayout>& layout, const Tensors& tensors) {
  std::vector<IValue> arguments;
  const at::Tensor* next = tensors.data();
  for (const ScriptLayout& argument : layout) arguments.push_back(build_script_value(argument, next));
  return arguments;
}

detail::Program make_script_program(std::shared_ptr<const Script> script, std::vector<ScriptLayout> layout) {
  return [script = std::move(script),
          layout = std::move(layout)](const Tensors& tensors) -> detail::Returned {
    std::vector<IValue> arguments = build_arguments(layout, tensors);
    IValue result = Tracer::current()    ? trace_script(*script, arguments)
                    : Watcher::current() ? interpret(*script, arguments)
                                         : script->method(std::move(arguments));
    Writer writer;
    std::vector<std::string> names;
    writer.names = &names;
    writer.path = "the result of " + script->schema().name();
    write_script_value(result, writer);
    return {std::move(writer.tensors), std::make_shared<const ScriptLayout>(describe_script_value(result))};
  };
}

// The layout outlives the call that made it, so it must not hold on to that call's tensors; it has none, only
// their places.
std::vector<ScriptLayout> layout_of(const std::vector<IValue>& arguments) {
  std::vector<ScriptLayout> layout;
  for (const IValue& argument : arguments) layout.push_back(describe_script_value(argument));
  return layout;
}

detail::Namer names_of(const torch::jit::Module& module) {
  return [module](const at::Tensor& tensor) -> std::string {
    for (const auto& item : module.named_parameters())
      if (item.value.is_same(tensor)) return "parameter " + item.name;
    for (const auto& item : module.named_buffers())
      if (item.value.is_same(tensor)) return "buffer " + item.name;
    return "";
  };
}

}  // namespace

struct CompiledScript::State {
  State(const torch::jit::Module& module, Options options)
      : script(std::make_shared<Script>(module)), variants(std::move(options), names_of(module)) {}

  /// The function for a call like this; `tensors` receives the tensors among the arguments.
  std::shared_ptr<detail::Function> find(std::vector<IValue> given, const Keywords& keywords,
                                         Tensors& tensors) {
    std::vector<IValue> arguments = match_arguments(script->schema(), std::move(given), keywords);
    Writer writer;
    write_arguments(*script, arguments, writer);
    script->attributes.write(writer);
    tensors = std::move(writer.tensors);
    if (auto function = variants.find(writer.rest)) return function;
    std::vector<std::string> names;
    Writer naming;
    naming.names = &names;
    write_arguments(*script, arguments, naming);
    return variants.add(writer.rest, make_script_program(script, layout_of(arguments)), std::move(names));
  }

  std::shared_ptr<Script> script;
  detail::Variants variants;
};

CompiledScript::CompiledScript(const torch::jit::Module& module, Options options)
    : state_(std::make_shared<State>(module, std::move(options))) {}

IValue CompiledScript::operator()(std::vector<IValue> arguments, const Keywords& keywords) const {
  Tensors tensors;
  auto function = state().find(std::move(arguments), keywords, tensors);
  detail::Returned returned = detail::call(*function, tensors);
  const at::Tensor* next = returned.tensors.data();
  return build_script_value(*static_cast<const ScriptLayout*>(returned.structure.get()), next);
}

Explanation CompiledScript::explain(std::vector<IValue> arguments, const Keywords& keywords) const {
  Tensors tensors;
  auto function = state().find(std::move(arguments), keywords, tensors);
  return detail::explain(*function, tensors);
}

CompiledScript::State& CompiledScript::state() const {
  if (!state_) detail::refuse_empty("script");
  return *state_;
}

torch::jit::Module* CompiledScript::get() const { return &state().script->module; }

}  // namespace tandem
