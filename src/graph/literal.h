/// The printed form of one operand, read back.
#pragma once

#include <tandem/graph.h>

#include <functional>

#include "graph/cursor.h"

namespace tandem {

/// `read_value` is called where a `%` comes next and steps over the value. `type` is what the schema
/// declares, or null.
Operand read_operand(Cursor& cursor, const c10::Type* type, const std::function<Value(Cursor&)>& read_value);

/// A none and an empty list are written alike for tensors and constants; this makes of them what the schema
/// declares.
void settle(Operand& operand, const c10::Type* type);

c10::Device read_device(Cursor& cursor);
at::ScalarType read_dtype(Cursor& cursor);

}  // namespace tandem
