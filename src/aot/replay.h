/// Running a record on real tensors, operator by operator.
#pragma once

#include "aot/traced.h"

namespace tandem {

/// Whether running the record gives the histories that the program itself would give: no code of the user's
/// lies in them, and no leaf that the program made.
bool can_be_replayed(const Traced& traced);

/// Does to the real inputs what the program would have done, through autograd, and returns its outputs; fakes
/// that the program kept become the tensors that they stand for.
Tensors replay(const Traced& traced);

/// Fakes of a trace that something still owns become real tensors with the contents that they would have;
/// inputs and generators stay as they are.
void give_data(const Tracer& tracer, const std::vector<FakePtr>& kept);

}  // namespace tandem
