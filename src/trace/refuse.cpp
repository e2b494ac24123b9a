#include "trace/refuse.h"

#include <tandem/error.h>

#include "ops/facts.h"
#include "trace/location.h"
#include "trace/tracer.h"

namespace tandem {
namespace {

thread_local const c10::OperatorHandle* outermost = nullptr;

std::string shown(const c10::OperatorHandle& op) {
  std::string name = full_name(op);
  return name == "aten::_local_scalar_dense" ? "item (aten::_local_scalar_dense)" : name;
}

}  // namespace

OutermostCall::OutermostCall(const c10::OperatorHandle& op) : is_outermost_(!outermost) {
  if (is_outermost_) outermost = &op;
}

OutermostCall::~OutermostCall() {
  if (is_outermost_) outermost = nullptr;
}

std::string called_at() {
  std::string where = user_location();
  return where.empty() ? "" : " (called at " + where + ")";
}

void refuse_data_dependent(const c10::OperatorHandle& op) {
  if (outermost && !(*outermost == op) && !facts(*outermost).data_dependent)
    throw RunEagerly(full_name(*outermost) + " reads data (" + shown(op) + ")" + called_at());
  std::string name = outermost && !(*outermost == op) ? full_name(*outermost) + " (" + full_name(op) + ")" : shown(op);
  throw UnsupportedError(name + " makes sizes or values that depend on the data, which cannot be known ahead of time" + called_at() +
                         "; compute it outside the compiled function");
}

bool asks_for_data(std::string_view error) {
  return error.find("data pointer of Tensor that doesn't have storage") != error.npos || error.find("Cannot access storage of FakeImpl") != error.npos;
}

void refuse_data_access(const c10::OperatorHandle& op) { throw RunEagerly(full_name(op) + " reads the memory of its arguments directly" + called_at()); }

void refuse_data_access() {
  throw UnsupportedError("the function reads the memory of a tensor, which has no data while the function is traced" + called_at() +
                         "; do that outside the compiled function");
}

}  // namespace tandem
