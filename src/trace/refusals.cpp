// Calls that are not compiled: what would tell their results from eager's.
#include "graph/geometry.h"
#include "ops/versions.h"
#include "trace/recorded_call.h"
#include "trace/refuse.h"

namespace tandem {

/// Memory that is replaced or resized is no view of anything.
void RecordedCall::refuse_other_memory() const {
  if (facts_.replaces_memory)
    throw RunEagerly(full_name(op_) + " replaces or resizes the memory of a tensor" + called_at());
}

/// The node that a tensor comes from knows the sizes it had, and libtorch takes a gradient of them or of the
/// new ones as it happens.
void RecordedCall::refuse_sizes_behind_autograd() const {
  if (facts_.changes_metadata && !c10::GradMode::is_enabled() && !tracer_.differentiating_ &&
      stack_[first_].isTensor() && stack_[first_].toTensor().requires_grad())
    tracer_.refuse_in_the_end(full_name(op_) +
                              " changes the sizes or strides of a tensor that requires grad under no_grad" +
                              called_at());
}

/// libtorch lets autograd see what the kernel of such an operator calls, and what that is nobody knows before
/// it runs.
void RecordedCall::refuse_operators_without_formula() const {
  if (is_foreign(op_) && !op_.hasKernelForDispatchKey(c10::DispatchKey::Autograd) &&
      !op_.hasKernelForAnyDispatchKey(c10::autograd_dispatch_keyset))
    throw RunEagerly(full_name(op_) + " has no derivative formula and is given a tensor that requires grad" +
                     called_at());
}

/// A view made under no_grad asks its base whether it requires grad, and the fake of such a leaf has no base.
void RecordedCall::refuse_views_of_leaf_views() const {
  if (!facts_.view || c10::GradMode::is_enabled()) return;
  for_each_argument(node_, [&](Value v) {
    if (std::find(tracer_.leaf_views_.begin(), tracer_.leaf_views_.end(), tracer_.graph_.meta(v).storage) !=
        tracer_.leaf_views_.end())
      throw RunEagerly("a view is made under no_grad of a leaf that is itself a view" + called_at());
  });
}

/// What such a kernel leaves there depends on its loops, and a result that is resized is no operand any more.
void RecordedCall::refuse_results_over_operands() const {
  if (facts_.kind == Kind::Pointwise || facts_.written.empty() ||
      !schema_.arguments()[size_t(facts_.written[0])].kwarg_only())
    return;
  if (tracer_.phase_ == Phase::Forward && reads_where_it_writes())
    tracer_.refuse_in_the_end(full_name(op_) + " reads memory that it writes" + called_at());
}

bool RecordedCall::reads_where_it_writes() const {
  auto is_target = [&](size_t a) {
    return std::find(facts_.written.begin(), facts_.written.end(), int(a)) != facts_.written.end();
  };
  bool found = false;
  for (int target : facts_.written)
    for (size_t a = 0; a < node_.arguments.size(); ++a)
      for_each_value(node_.arguments[size_t(target)], [&](Value written) {
        if (is_target(a)) return;
        for_each_value(node_.arguments[a], [&](Value read) {
          found = found || may_overlap(tracer_.graph_.meta(written), tracer_.graph_.meta(read));
        });
      });
  return found;
}

/// Indexing by a mask gives as many elements as the mask has ones.
void RecordedCall::refuse_masks() const {
  if (schema_.name() != "aten::index") return;
  for (const std::optional<at::Tensor>& index : metas_[1].toOptionalTensorVector())
    if (index && (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte))
      refuse_data_dependent(op_);
}

void RecordedCall::refuse_mixed_devices(const FakeImpl& fake) const {
  if (!reference_ || fake.device() == reference_->device()) return;
  const FakeImpl& on_cpu = fake.device().is_cpu() ? fake : *reference_;
  bool cpu_scalar = on_cpu.device().is_cpu() && on_cpu.dim() == 0;
  if (cpu_scalar || facts_.mixes_devices) return;
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but ", full_name(op_),
              " got tensors on ", reference_->device(), " and ", fake.device(), called_at());
}

/// An input would be given other memory, an operand on that memory is read while it moves, other tensors
/// there no longer lie where they were made, and autograd knows the sizes of before.
void RecordedCall::refuse_resized_result(const at::Tensor& result, Value before) const {
  const int32_t storage = tracer_.graph_.meta(before).storage;
  auto refuse = [this](const char* what) { tracer_.refuse_in_the_end(full_name(op_) + what + called_at()); };
  if (result.requires_grad()) refuse(" resizes a tensor that requires grad");
  if (is_input(storage)) refuse(" resizes an input");
  for (Value other{0}; size_t(other.id) < tracer_.graph_.value_count(); ++other.id)
    if (other != before && tracer_.graph_.meta(other).storage == storage)
      refuse(" resizes memory that other tensors share");
  for (size_t a = 0; a < node_.arguments.size(); ++a) {
    if (std::find(facts_.written.begin(), facts_.written.end(), int(a)) != facts_.written.end()) continue;
    for_each_value(node_.arguments[a], [&](Value read) {
      if (tracer_.graph_.meta(read).storage == storage) refuse(" resizes memory that it reads");
    });
  }
  refuse_result_laid_out_like_copies();
}

/// On the CPU a kernel copies the operands that it casts before it looks at strides, and a Meta kernel does
/// not.
void RecordedCall::refuse_result_laid_out_like_copies() const {
  if (facts_.kind != Kind::Pointwise || !device_.is_cpu()) return;
  std::vector<at::ScalarType> dtypes;
  for (size_t a = 0; a < node_.arguments.size(); ++a)
    if (std::find(facts_.written.begin(), facts_.written.end(), int(a)) == facts_.written.end())
      for_each_value(node_.arguments[a],
                     [&](Value read) { dtypes.push_back(tracer_.graph_.meta(read).dtype); });
  auto needs_no_cast = [&](at::ScalarType dtype) {
    return dtype == dtypes[0] && !c10::isIntegralType(dtype, /*includeBool=*/true);
  };
  if (dtypes.size() > 1 && !std::all_of(dtypes.begin(), dtypes.end(), needs_no_cast))
    throw RunEagerly(full_name(op_) + " resizes a result of operands that it casts" + called_at());
}

/// The program may ask the real tensor for its sizes, which do not change while it is traced.
void RecordedCall::refuse_other_sizes_of_a_capture(const at::Tensor& fake) const {
  for (const TracedInput& input : tracer_.inputs_)
    if (input.captured && input.visible.is_same(fake))
      throw RunEagerly(full_name(op_) +
                       " changes the sizes or strides of a tensor that the function captured" + called_at());
}

bool RecordedCall::is_input(int32_t storage) const {
  return std::any_of(tracer_.inputs_.begin(), tracer_.inputs_.end(), [&](const TracedInput& input) {
    return tracer_.graph_.meta(input.value).storage == storage;
  });
}

/// Autograd makes nodes for all elements first and then one more for each that is a view, and sums gradients
/// in the order of its nodes; the fake has no base.
void RecordedCall::refuse_list_write_to_view(const at::Tensor& tensor) const {
  bool differentiated = false;
  for_each_argument(
      node_, [&](Value v) { differentiated = differentiated || tracer_.graph_.meta(v).requires_grad; });
  if (!differentiated || !c10::GradMode::is_enabled()) return;
  for (const TracedInput& input : tracer_.inputs_)
    if ((input.visible.is_same(tensor) || input.real.is_same(tensor)) && input.real.is_view())
      tracer_.refuse_in_the_end(full_name(op_) + " writes an input that is a view of another tensor" +
                                called_at());
}

}  // namespace tandem
