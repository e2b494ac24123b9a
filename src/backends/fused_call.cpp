#include "backends/fused_call.h"

#include "backends/kept_memory.h"
#include "graph/geometry.h"
#include "loops/parallel.h"

namespace tandem {
namespace {

at::Tensor empty_like_meta(const TensorMeta& meta) {
  return make_from_kept(meta.sizes, meta.strides, meta.dtype);
}

bool lies_as(const at::Tensor& tensor, const TensorMeta& meta) {
  return tensor.sizes() == at::IntArrayRef(meta.sizes) &&
         same_strides(meta.sizes, tensor.strides(), meta.strides) && !tensor._is_zerotensor() &&
         !tensor.is_neg();
}

/// What a launch's code is given.
struct Running {
  const loops::Launch& launch;
  loops::Code code;
  void* const* buffers;

  static void part(const void* context, int64_t begin, int64_t end) {
    const auto& [launch, code, buffers] = *static_cast<const Running*>(context);
    if (code)
      code(buffers, launch.shape.data(), launch.numbers.data(), begin, end);
    else
      loops::interpret(launch.kernel, buffers, launch.shape.data(), launch.numbers.data(), begin, end);
  }
};

class FusedCall final : public Call {
 public:
  FusedCall(const CallSite& site, FusedSite fused)
      : fused_(std::move(fused)),
        inputs_(std::get<std::vector<TensorSlot>>(site.arguments[0])),
        results_(std::get<std::vector<int32_t>>(site.results[0])) {}

  void run(at::Tensor* registers, torch::jit::Stack&) const override {
    c10::SmallVector<at::Tensor, 8> made, scratch, copied;
    c10::SmallVector<char*, 16> read, written, own;
    for (size_t i = 0; i < inputs_.size(); ++i) read.push_back(begin_of_input(i, registers, copied));
    for (const TensorMeta& meta : fused_.outputs) {
      made.push_back(empty_like_meta(meta));
      written.push_back(static_cast<char*>(made.back().mutable_data_ptr()));
    }
    for (int64_t bytes : fused_.fused.scratch) {
      scratch.push_back(make_from_kept({bytes}, {1}, at::kByte));
      own.push_back(static_cast<char*>(scratch.back().mutable_data_ptr()));
    }
    char* const nothing = nullptr;
    char* const* const memories[] = {read.data(), written.data(), own.data(), &nothing};
    for (size_t l = 0; l < fused_.fused.launches.size(); ++l)
      launch(fused_.fused.launches[l], fused_.codes[l], memories);
    for (const TensorSlot& slot : inputs_) slot.release(registers);
    for (size_t i = 0; i < results_.size(); ++i)
      if (results_[i] >= 0) registers[results_[i]] = std::move(made[i]);
  }

 private:
  /// A copy where the tensor does not lie as its description says.
  char* begin_of_input(size_t i, at::Tensor* registers, c10::SmallVectorImpl<at::Tensor>& copied) const {
    const at::Tensor& tensor = inputs_[i].peek(registers);
    const TensorMeta& meta = fused_.inputs[i];
    // A kernel only reads it, whatever its type says.
    if (lies_as(tensor, meta)) return static_cast<char*>(const_cast<void*>(tensor.const_data_ptr()));
    copied.push_back(empty_like_meta(meta));
    copied.back().copy_(tensor);
    return static_cast<char*>(copied.back().mutable_data_ptr());
  }

  void launch(const loops::Launch& launch, loops::Code code, char* const* const* memories) const {
    c10::SmallVector<void*, 24> buffers;
    for (const loops::Memory& memory : launch.buffers)
      buffers.push_back(memories[size_t(memory.of)][memory.index] + memory.offset);
    const Running running{launch, code, buffers.data()};
    // Threads that begin take about as long.
    constexpr double least_for_thread = 8000;
    const auto grain =
        int64_t(double(launch.units) * std::min(1.0, least_for_thread / launch.nanoseconds)) + 1;
    if (grain >= launch.units)
      Running::part(&running, 0, launch.units);
    else
      loops::in_parallel(launch.units, grain, Running::part, &running);
  }

  const FusedSite fused_;
  const std::vector<TensorSlot> inputs_;
  const std::vector<int32_t> results_;
};

}  // namespace

std::unique_ptr<Call> make_fused_call(const CallSite& site, FusedSite fused) {
  return std::make_unique<FusedCall>(site, std::move(fused));
}

}  // namespace tandem
