// Which tensors an entry is called with: arguments, what the function captured, and bases of those that share
// memory.
#include <map>
#include <unordered_map>

#include "runtime/entry.h"

namespace tandem {

void Entry::read_inputs(const Tensors& arguments) {
  input_of_argument_.assign(arguments.size(), size_t(-1));
  const auto& inputs = compilation_.traced.tracer->inputs();
  for (size_t a = 0; a < arguments.size(); ++a)
    for (size_t i = 0; i < inputs.size() && arguments[a].defined(); ++i)
      if (inputs[i].real.is_same(arguments[a])) input_of_argument_[a] = i;
  compilation_.captures = captures_of_trace();
}

/// A gradient is found again where it gathers.
std::vector<Capture> Entry::captures_of_trace() const {
  std::unordered_map<const c10::TensorImpl*, at::Tensor> gathers;
  auto note = [&](const at::Tensor& leaf) {
    if (leaf.defined() && leaf.is_leaf() && leaf.grad().defined())
      gathers.try_emplace(leaf.grad().unsafeGetTensorImpl(), leaf);
  };
  for (const TracedInput& input : compilation_.traced.tracer->inputs()) note(input.real);
  for (const auto& root : compilation_.options.watch)
    if (root)
      for (const at::Tensor& parameter : root->parameters()) note(parameter);
  std::vector<Capture> captures;
  for (const TracedInput& input : compilation_.traced.tracer->inputs()) {
    if (!input.captured) continue;
    auto leaf = gathers.find(input.real.unsafeGetTensorImpl());
    captures.push_back(leaf == gathers.end() ? Capture(input.real) : Capture::gradient_of(leaf->second));
  }
  return captures;
}

bool Entry::captures_are_alive() const {
  auto all = [](const std::vector<Capture>& captures) {
    return std::all_of(captures.begin(), captures.end(),
                       [](const Capture& capture) { return capture.is_alive(); });
  };
  return all(compilation_.captures) && all(captured_members_);
}

void Entry::add_leaves(Tensors& to) const {
  for (const Capture& capture : compilation_.captures)
    if (at::Tensor tensor = capture.lock(); tensor.defined() && tensor.requires_grad() && tensor.is_leaf())
      to.push_back(std::move(tensor));
}

std::optional<Tensors> Entry::reach(const Tensors& arguments) const {
  auto reached = alive(compilation_.captures);
  if (!reached || !bases_) return reached;
  const auto captured = alive(captured_members_);
  if (!captured || arguments.size() + bases_->groups().size() != input_of_argument_.size())
    return std::nullopt;
  const auto bases = bases_->bases(bases_->members(arguments, *captured));
  if (!bases) return std::nullopt;
  reached->insert(reached->end(), captured->begin(), captured->end());
  reached->insert(reached->end(), bases->begin(), bases->end());
  return reached;
}

bool Entry::saves_memory_of(size_t input) const {
  const auto& shared = first_->shared_versions;
  return std::any_of(shared.begin(), shared.end(),
                     [&](const Derivative::SharedVersion& s) { return s.of_input && s.owner == input; });
}

Tensors Entry::gather_inputs(const Tensors& arguments, Tensors reached) const {
  Tensors inputs(plan().roles.inputs.size());
  auto place = [&](const Tensors& given) {
    for (size_t a = 0; a < given.size(); ++a)
      if (input_of_argument_[a] != size_t(-1)) inputs[input_of_argument_[a]] = given[a];
  };
  auto next = std::move(reached.begin(), reached.begin() + int64_t(compilation_.captures.size()),
                        inputs.begin() + int64_t(graph_inputs() - compilation_.captures.size()));
  if (!bases_) {
    place(arguments);
    return inputs;
  }
  const auto captured = reached.begin() + int64_t(compilation_.captures.size()),
             bases = captured + int64_t(captured_members_.size());
  place(bases_->arguments(Tensors(bases, reached.end()), arguments));
  Tensors views = bases_->views(bases_->members(arguments, Tensors(captured, bases)));
  std::move(views.begin(), views.end(), next);
  return inputs;
}

void Entry::name_inputs(const CompileRequest& request) {
  std::map<const c10::TensorImpl*, std::string> known;
  for (const auto& root : compilation_.options.watch) {
    if (!root) continue;
    for (const auto& item : root->named_parameters())
      known.emplace(item.value().unsafeGetTensorImpl(), "parameter " + item.key());
    for (const auto& item : root->named_buffers())
      known.emplace(item.value().unsafeGetTensorImpl(), "buffer " + item.key());
  }
  input_names_.clear();
  size_t arguments = 0, captured = 0;
  for (const TracedInput& input : compilation_.traced.tracer->inputs()) {
    if (!input.captured) {
      size_t a = size_t(std::find(input_of_argument_.begin(), input_of_argument_.end(), arguments) -
                        input_of_argument_.begin());
      input_names_.push_back(a < request.argument_names.size() ? request.argument_names[a]
                                                               : "argument " + std::to_string(a));
      ++arguments;
    } else {
      auto found = known.find(input.real.unsafeGetTensorImpl());
      std::string name = found != known.end()   ? found->second
                         : request.name_capture ? request.name_capture(input.real)
                                                : "";
      input_names_.push_back(name.empty() ? "captured tensor " + std::to_string(captured) : name);
      ++captured;
    }
  }
}

/// Of arguments that share memory the graph takes the tensor that they are views of, before all others.
void Entry::mark_static_arguments() {
  const size_t first = bases_ ? bases_->groups().size() : 0;
  for (size_t a : compilation_.options.static_arguments)
    if (first + a < input_of_argument_.size() && input_of_argument_[first + a] != size_t(-1))
      compilation_.plan.roles.inputs[input_of_argument_[first + a]].stays = true;
}

}  // namespace tandem
