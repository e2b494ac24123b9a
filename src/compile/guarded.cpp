#include "compile/guarded.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <tandem/error.h>

#include <mutex>

#include "graph/geometry.h"

namespace tandem {
namespace {

/// An output that is copied into the strides of the graph.
struct Restrided {
  size_t output;
  TensorMeta meta;
};

/// The sizes of what lies in memory of a tensor that is expanded over some dimensions.
Dims stored_sizes(const TensorMeta& meta) {
  Dims sizes = meta.sizes;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (meta.strides[d] == 0) sizes[d] = std::min<int64_t>(sizes[d], 1);
  return sizes;
}

at::Tensor restride(const at::Tensor& result, const TensorMeta& meta) {
  at::Tensor source = result;
  const Dims stored = stored_sizes(meta);
  for (size_t d = 0; d < stored.size(); ++d) source = source.narrow(int64_t(d), 0, stored[d]);
  return at::empty_strided(stored, meta.strides, result.options()).copy_(source).expand(meta.sizes);
}

class Guarded final : public Executable {
 public:
  Guarded(std::shared_ptr<Executable> code, std::vector<Restrided> restrided)
      : code_(std::move(code)), one_at_a_time_(!code_->may_overlap()), restrided_(std::move(restrided)) {}

  Tensors run(Tensors&& inputs) override {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::AutoGradMode no_grad(false);
    std::unique_lock alone(mutex_, std::defer_lock);
    if (one_at_a_time_) alone.lock();
    Tensors results = code_->run(std::move(inputs));
    for (const auto& [output, meta] : restrided_)
      if (output < results.size() && results[output].defined())
        results[output] = restride(results[output], meta);
    return results;
  }
  bool shields_itself() const override { return true; }
  std::optional<std::vector<uint8_t>> artifact() const override { return code_->artifact(); }
  std::vector<KernelInfo> kernels(const Graph& graph) const override { return code_->kernels(graph); }
  std::vector<Listing> listings() const override { return code_->listings(); }

 private:
  const std::shared_ptr<Executable> code_;
  const bool one_at_a_time_;
  const std::vector<Restrided> restrided_;
  std::mutex mutex_;
};

std::vector<Restrided> find_restrided(const Executable& code, const Graph& graph, const std::string& maker) {
  const std::vector<std::vector<int64_t>> chosen = code.output_strides();
  if (chosen.empty()) return {};
  if (chosen.size() != graph.outputs().size())
    throw Error(maker + " chose the strides of " + std::to_string(chosen.size()) +
                " outputs; the graph has " + std::to_string(graph.outputs().size()));
  std::vector<Restrided> restrided;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!graph.outputs()[i]) continue;
    TensorMeta meta = graph.meta(graph.outputs()[i]), other = meta;
    other.strides.assign(chosen[i].begin(), chosen[i].end());
    if (other.strides.size() != meta.strides.size())
      throw Error(maker + " chose " + std::to_string(other.strides.size()) + " strides for output " +
                  std::to_string(i) + ", which has " + std::to_string(meta.strides.size()) + " dimensions");
    if (same_strides(meta, other)) continue;
    TensorMeta stored = meta;
    stored.sizes = stored_sizes(meta);
    const char* obstacle = meta.conj || meta.neg          ? ", which is conjugated or negated lazily"
                           : !is_surely_injective(stored) ? ", which holds elements in several places"
                                                          : nullptr;
    if (obstacle) throw Error(maker + " chose the strides of output " + std::to_string(i) + obstacle);
    restrided.push_back({i, std::move(meta)});
  }
  return restrided;
}

}  // namespace

std::shared_ptr<Executable> guarded(std::shared_ptr<Executable> code, const Graph& graph,
                                    const std::string& maker) {
  std::vector<Restrided> restrided = find_restrided(*code, graph, maker);
  if (restrided.empty() && code->shields_itself() && code->may_overlap()) return code;
  return std::make_shared<Guarded>(std::move(code), std::move(restrided));
}

}  // namespace tandem
