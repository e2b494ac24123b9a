// Whether the program still does what was recorded of it.
#include <tandem/passes.h>

#include <bit>
#include <cstdlib>
#include <string_view>

#include "aot/replay.h"
#include "compile/random_numbers.h"
#include "runtime/entry.h"

namespace tandem {
namespace {

/// TANDEM_WATCHED_CALLS=all or =off, for those who test compiled functions.
std::string_view wish_of_environment() {
  static const std::string wish = [] {
    const char* set = std::getenv("TANDEM_WATCHED_CALLS");
    return std::string(set ? set : "");
  }();
  return wish;
}

bool registers_passes() {
  for (Stage stage : {Stage::Joint, Stage::Forward, Stage::Backward, Stage::Inference})
    if (!registered_passes(stage).empty()) return true;
  return false;
}

std::vector<Value> values_of(const Traced& traced) {
  std::vector<Value> values;
  for (const at::Tensor& output : traced.outputs)
    values.push_back(output.defined() ? traced.tracer->value_of(output) : Value{});
  return values;
}

}  // namespace

/// Often while a signature is young, ever more rarely then.
bool Entry::is_watched_call() {
  const size_t call = ++calls_;
  if (!compilation_.options.watched_calls || wish_of_environment() == "off") return false;
  return wish_of_environment() == "all" || (call > 1 && std::has_single_bit(call - 1));
}

bool Entry::can_be_followed(const Tensors& inputs) const {
  // Autograd differentiates a write to a view through its base, which the fake of the view does not have.
  for (size_t i = 0; i < inputs.size(); ++i)
    if (plan().roles.inputs[i].write_recorded && inputs[i].defined() && inputs[i].is_view()) return false;
  const bool has_compilers = compilation_.options.fw_compiler || compilation_.options.bw_compiler ||
                             compilation_.options.inference_compiler;
  const bool gives_eager_bits =
      (compilation_.options.backend == "eager" || compilation_.options.backend == "debug") &&
      !has_compilers && !compilation_.options.decompositions;
  // Who limits what a step keeps has no room for what eager keeps.
  if (compilation_.options.memory_budget < 1 || compilation_.options.memory_budget_bytes) return false;
  if (draws_counter_numbers(compilation_)) return false;
  // A program of shared memory was recorded as a function of that memory.
  // Code that the caller's backward runs must find what the forward found, which is told something else.
  return gives_eager_bits && !registers_passes() && !bases_ &&
         !compilation_.traced.tracer->met_saved_tensor_hooks();
}

Graph Entry::record() {
  std::lock_guard recording(compilation_.mutex);
  return compilation_.traced.tracer->graph();
}

std::vector<Value> Entry::recorded_outputs() const { return values_of(compilation_.traced); }

Traced Entry::trace_again(const detail::Program& program, const Tensors& arguments,
                          const Tensors& leaves) const {
  if (!bases_) return trace_forward(program, arguments, {.leaves = leaves, .is_check = true});
  const Tensors members = bases_->members(arguments, *alive(captured_members_));
  std::vector<TracedMember> seen;
  return trace_forward(bases_->program(program, members, seen),
                       bases_->arguments(*bases_->bases(members), arguments),
                       {.members = &seen, .leaves = leaves, .is_check = true});
}

std::string Entry::difference_from(const detail::Program& program, const Tensors& arguments,
                                   const Tensors& leaves) {
  Traced again;
  try {
    again = trace_again(program, arguments, leaves);
  } catch (const RunEagerly& reason) {
    return reason.what();
  }
  give_data(*again.tracer, again.kept);
  if (!again.kept.empty()) return "it keeps " + describe_kept(again) + ", beyond the call";
  size_t next = 0;
  for (const TracedInput& input : again.tracer->inputs())
    if (input.captured && next < compilation_.captures.size() &&
        !compilation_.captures[next++].lock().is_same(input.real))
      return input_names_[input_names_.size() - compilation_.captures.size() + next - 1] +
             " is another tensor than when the function was traced, though nothing in its signature "
             "changed; pass it as an argument, or write into the tensor that the function captured";
  std::lock_guard recording(compilation_.mutex);
  const Graph &now = again.tracer->graph(), &then = compilation_.traced.tracer->graph();
  if (now.hash() == then.hash() && again.gradients != compilation_.traced.gradients)
    return "it leaves gradients in other tensors than when it was traced";
  if (now.hash() == then.hash())
    return values_of(again) == values_of(compilation_.traced)
               ? ""
               : "it returns other tensors than when it was traced";
  size_t n = 0;
  while (n < now.nodes().size() && n < then.nodes().size() &&
         to_string(now, now.nodes()[n]) == to_string(then, then.nodes()[n]))
    ++n;
  return "the function computes something else than when it was traced, though nothing in its signature "
         "changed; a captured number or flag that "
         "changes must become an argument. First difference:\n" +
         (n < now.nodes().size() ? excerpt(now, n) : std::string("  the function ends earlier now"));
}

void Entry::give_up(const std::string& reason) {
  std::lock_guard recording(compilation_.mutex);
  if (is_broken_) return;
  broken_promise_ = reason;
  is_broken_.store(true, std::memory_order_release);
}

}  // namespace tandem
