#include "trace/refuse.h"

#include <tandem/error.h>

#include "base/history.h"
#include "ops/facts.h"
#include "trace/location.h"
#include "trace/tracer.h"

namespace tandem {
namespace {

thread_local const c10::OperatorHandle* outermost = nullptr;
thread_local const void* node_around_trace = nullptr;

std::string shown(const c10::OperatorHandle& op) {
  std::string name = full_name(op);
  return name == "aten::_local_scalar_dense" ? "item (aten::_local_scalar_dense)" : name;
}

/// Of a derivative that libtorch computes now: the call that it belongs to, or at least its own name.
std::string derivative_in_hand() {
  const NodePtr node = torch::autograd::get_current_node();
  const Tracer* tracer = Tracer::current();
  if (!node || node.get() == node_around_trace || !tracer || !is_generated(*node) || has_hooks(*node))
    return {};
  const Node* call = tracer->call_of(*node);
  if (!call) return node->name();
  return full_name(call->op) + (call->location.empty() ? "" : " (called at " + call->location + ")");
}

}  // namespace

OutermostCall::OutermostCall(const c10::OperatorHandle& op) : is_outermost_(!outermost) {
  if (is_outermost_) outermost = &op;
}

OutermostCall::~OutermostCall() {
  if (is_outermost_) outermost = nullptr;
}

AroundTrace::AroundTrace() : previous_(node_around_trace) {
  node_around_trace = torch::autograd::get_current_node().get();
}

AroundTrace::~AroundTrace() { node_around_trace = previous_; }

std::string called_at() {
  std::string where = user_location();
  return where.empty() ? "" : " (called at " + where + ")";
}

void refuse_data_dependent(const c10::OperatorHandle& op) {
  if (const std::string of = derivative_in_hand(); !of.empty())
    throw RunEagerly("the derivative of " + of + " reads data (" + shown(op) + ")");
  if (outermost && !(*outermost == op) && !facts(*outermost).data_dependent)
    throw RunEagerly(full_name(*outermost) + " reads data (" + shown(op) + ")" + called_at());
  std::string name =
      outermost && !(*outermost == op) ? full_name(*outermost) + " (" + full_name(op) + ")" : shown(op);
  throw UnsupportedError(
      name + " makes sizes or values that depend on the data, which cannot be known ahead of time" +
      called_at() + "; compute it outside the compiled function");
}

bool asks_for_data(std::string_view error) {
  return error.find("data pointer of Tensor that doesn't have storage") != error.npos ||
         error.find("Cannot access storage of FakeImpl") != error.npos;
}

void refuse_data_access(const c10::OperatorHandle& op) {
  throw RunEagerly(full_name(op) + " reads the memory of its arguments directly" + called_at());
}

void refuse_data_access() {
  throw UnsupportedError(
      "the function reads the memory of a tensor, which has no data while the function is traced" +
      called_at() + "; do that outside the compiled function");
}

}  // namespace tandem
