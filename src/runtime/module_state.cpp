#include "runtime/module_state.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/distance.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <bit>
#include <optional>
#include <typeindex>
#include <unordered_map>

namespace tandem {
namespace {

namespace nn = torch::nn;

using Words = std::vector<uint64_t>;

void append(Words& to, const at::Tensor& tensor) {
  to.push_back(reinterpret_cast<uintptr_t>(tensor.unsafeGetTensorImpl()));
}
void append(Words& to, double number) { to.push_back(std::bit_cast<uint64_t>(number)); }
void append(Words& to, const std::optional<double>& number) {
  to.push_back(number.has_value());
  append(to, number.value_or(0));
}
/// Which of its alternatives an enumeration of libtorch's is.
template <class... Choices>
void append(Words& to, const std::variant<Choices...>& choice) {
  to.push_back(choice.index());
}

/// Every member and option that a module may change while it is in use, of those that this one has.
template <class Module>
void append_state_of(const nn::Module& base, Words& to) {
  const auto& module = dynamic_cast<const Module&>(base);
#define TANDEM_MEMBER(name) \
  if constexpr (requires { append(to, module.name); }) append(to, module.name);
#define TANDEM_OPTION(name) \
  if constexpr (requires { append(to, module.options.name()); }) append(to, module.options.name());
  // clang-format off
  TANDEM_MEMBER(weight) TANDEM_MEMBER(bias) TANDEM_MEMBER(running_mean) TANDEM_MEMBER(running_var)
  TANDEM_MEMBER(num_batches_tracked) TANDEM_MEMBER(pos_weight) TANDEM_MEMBER(in_proj_weight)
  TANDEM_MEMBER(in_proj_bias) TANDEM_MEMBER(bias_k) TANDEM_MEMBER(bias_v) TANDEM_MEMBER(q_proj_weight)
  TANDEM_MEMBER(k_proj_weight) TANDEM_MEMBER(v_proj_weight)
  TANDEM_OPTION(p) TANDEM_OPTION(inplace) TANDEM_OPTION(eps) TANDEM_OPTION(momentum) TANDEM_OPTION(alpha)
  TANDEM_OPTION(beta) TANDEM_OPTION(lambda) TANDEM_OPTION(k) TANDEM_OPTION(min_val) TANDEM_OPTION(max_val)
  TANDEM_OPTION(negative_slope) TANDEM_OPTION(lower) TANDEM_OPTION(upper) TANDEM_OPTION(threshold)
  TANDEM_OPTION(value) TANDEM_OPTION(dim) TANDEM_OPTION(margin) TANDEM_OPTION(delta) TANDEM_OPTION(swap)
  TANDEM_OPTION(full) TANDEM_OPTION(log_input) TANDEM_OPTION(log_target) TANDEM_OPTION(reduction)
  TANDEM_OPTION(ignore_index) TANDEM_OPTION(label_smoothing) TANDEM_OPTION(blank) TANDEM_OPTION(zero_infinity)
  TANDEM_OPTION(dropout) TANDEM_OPTION(track_running_stats) TANDEM_OPTION(max_norm) TANDEM_OPTION(norm_type)
  TANDEM_OPTION(scale_grad_by_freq)
  // clang-format on
#undef TANDEM_OPTION
#undef TANDEM_MEMBER
}

using Reader = void (*)(const nn::Module&, Words&);

/// Classes derived from one of libtorch's are read as that one.
template <class... Modules>
Reader find_reader(const nn::Module& module) {
  Reader found = nullptr;
  ((found = found                                   ? found
            : dynamic_cast<const Modules*>(&module) ? &append_state_of<Modules>
                                                    : nullptr),
   ...);
  return found;
}

Reader reader_of(const nn::Module& module) {
  thread_local std::unordered_map<std::type_index, Reader> known;
  auto [at, fresh] = known.try_emplace(typeid(module));
  if (fresh)
    at->second = find_reader<
        nn::LinearImpl, nn::BilinearImpl, nn::Conv1dImpl, nn::Conv2dImpl, nn::Conv3dImpl,
        nn::ConvTranspose1dImpl, nn::ConvTranspose2dImpl, nn::ConvTranspose3dImpl, nn::BatchNorm1dImpl,
        nn::BatchNorm2dImpl, nn::BatchNorm3dImpl, nn::InstanceNorm1dImpl, nn::InstanceNorm2dImpl,
        nn::InstanceNorm3dImpl, nn::LayerNormImpl, nn::GroupNormImpl, nn::LocalResponseNormImpl,
        nn::EmbeddingImpl, nn::EmbeddingBagImpl, nn::DropoutImpl, nn::Dropout2dImpl, nn::Dropout3dImpl,
        nn::AlphaDropoutImpl, nn::FeatureAlphaDropoutImpl, nn::ELUImpl, nn::SELUImpl, nn::HardshrinkImpl,
        nn::HardtanhImpl, nn::LeakyReLUImpl, nn::SoftmaxImpl, nn::SoftminImpl, nn::LogSoftmaxImpl,
        nn::PReLUImpl, nn::ReLUImpl, nn::ReLU6Impl, nn::RReLUImpl, nn::CELUImpl, nn::GLUImpl,
        nn::SoftplusImpl, nn::SoftshrinkImpl, nn::ThresholdImpl, nn::MultiheadAttentionImpl, nn::LSTMImpl,
        nn::GRUImpl, nn::RNNImpl, nn::L1LossImpl, nn::MSELossImpl, nn::BCELossImpl, nn::BCEWithLogitsLossImpl,
        nn::KLDivLossImpl, nn::HingeEmbeddingLossImpl, nn::MultiMarginLossImpl, nn::CosineEmbeddingLossImpl,
        nn::SmoothL1LossImpl, nn::HuberLossImpl, nn::TripletMarginLossImpl, nn::CTCLossImpl,
        nn::PoissonNLLLossImpl, nn::MarginRankingLossImpl, nn::NLLLossImpl, nn::CrossEntropyLossImpl,
        nn::CosineSimilarityImpl, nn::PairwiseDistanceImpl>(module);
  return at->second;
}

}  // namespace

void append_module_state(const nn::Module& module, std::vector<uint64_t>& to) {
  if (Reader reader = reader_of(module)) reader(module, to);
}

}  // namespace tandem
