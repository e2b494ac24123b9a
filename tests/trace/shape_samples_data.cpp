#include "trace/shape_samples.h"

namespace tandem::samples {

std::vector<Sample> resampling() {
  std::vector<Sample> samples;
  for (const at::Tensor& x : {floats({2, 3, 5, 6}), floats({3, 5, 6})}) {
    auto padded = [&](const char* forward, const char* backward, std::vector<int64_t> pad) {
      std::vector<int64_t> sizes = x.sizes().vec();
      for (size_t i = 0; i < pad.size() / 2; ++i) sizes[sizes.size() - 1 - i] += pad[2 * i] + pad[2 * i + 1];
      samples.push_back({forward, {x, ints(pad)}});
      samples.push_back({backward, {floats(sizes), x, ints(pad)}});
    };
    padded("aten::reflection_pad2d", "aten::reflection_pad2d_backward", {1, 2, 0, 3});
    padded("aten::replication_pad2d", "aten::replication_pad2d_backward", {1, 2, 0, 3});
    padded("aten::reflection_pad1d", "aten::reflection_pad1d_backward", {1, 2});
    padded("aten::replication_pad1d", "aten::replication_pad1d_backward", {1, 2});
    padded("aten::replication_pad3d", "aten::replication_pad3d_backward", {1, 2, 0, 3, 1, 0});
    padded("aten::reflection_pad3d", "aten::reflection_pad3d_backward", {1, 2, 0, 3, 1, 0});
    samples.push_back({"aten::constant_pad_nd", {x, ints({1, 2, 0, 3}), 0.5}});
    samples.push_back({"aten::constant_pad_nd", {x, ints({-1, 2})}});
    samples.push_back({"aten::im2col", {x, ints({2, 2}), ints({1, 1}), ints({0, 0}), ints({1, 1})}});
    samples.push_back({"aten::im2col", {x, ints({2, 3}), ints({2, 1}), ints({1, 0}), ints({2, 1})}});
    samples.push_back({"aten::upsample_nearest2d", {x, ints({10, 12})}});
    samples.push_back({"aten::upsample_bilinear2d", {x, ints({10, 12}), false}});
    samples.push_back({"aten::upsample_bicubic2d", {x, ints({10, 12}), false}});
    samples.push_back(
        {"aten::upsample_nearest2d_backward", {floats({2, 3, 10, 12}), ints({10, 12}), ints({2, 3, 5, 6})}});
    samples.push_back({"aten::upsample_bilinear2d_backward",
                       {floats({2, 3, 10, 12}), ints({10, 12}), ints({2, 3, 5, 6}), false}});
    samples.push_back({"aten::upsample_nearest1d", {floats({2, 3, 5}), ints({10})}});
    samples.push_back({"aten::upsample_linear1d", {floats({2, 3, 5}), ints({10}), false}});
    samples.push_back({"aten::upsample_nearest3d", {floats({2, 3, 4, 5, 6}), ints({8, 10, 12})}});
    samples.push_back({"aten::upsample_trilinear3d", {floats({2, 3, 4, 5, 6}), ints({8, 10, 12}), false}});
    samples.push_back({"aten::_upsample_bilinear2d_aa", {x, ints({10, 12}), false}});
  }
  samples.push_back(
      {"aten::col2im",
       {floats({2, 12, 20}), ints({5, 6}), ints({2, 2}), ints({1, 1}), ints({0, 0}), ints({1, 1})}});
  samples.push_back(
      {"aten::col2im",
       {floats({12, 20}), ints({5, 6}), ints({2, 2}), ints({1, 1}), ints({0, 0}), ints({1, 1})}});
  at::Tensor x4 = floats({2, 3, 5, 6}), g4 = floats({2, 4, 7, 2}), x5 = floats({2, 3, 4, 5, 6}),
             g5 = floats({2, 3, 4, 5, 3});
  for (int64_t mode : {0, 1}) {
    samples.push_back({"aten::grid_sampler_2d", {x4, g4, mode, 0, false}});
    samples.push_back({"aten::grid_sampler_3d", {x5, g5, mode, 0, false}});
    for (bool input : {true, false}) {
      samples.push_back({"aten::grid_sampler_2d_backward",
                         {floats({2, 3, 4, 7}), x4, g4, mode, 0, false, masks({input, true})}});
      samples.push_back({"aten::grid_sampler_3d_backward",
                         {floats({2, 3, 3, 4, 5}), x5, g5, mode, 0, false, masks({input, true})}});
    }
  }
  samples.push_back({"aten::affine_grid_generator", {floats({2, 2, 3}), ints({2, 3, 4, 5}), false}});
  for (const at::Tensor& x : {floats({2, 8, 3, 4}), floats({8, 3, 4}), floats({2, 4, 4, 6}),
                              floats({0, 4, 8, 6}), floats({2, 0, 4, 4})}) {
    samples.push_back({"aten::pixel_shuffle", {x, 2}});
    samples.push_back({"aten::pixel_unshuffle", {x, 2}});
    samples.push_back({"aten::channel_shuffle", {x, 2}});
  }
  return samples;
}

std::vector<Sample> indexing() {
  std::vector<Sample> samples;
  for (const at::Tensor& x : {floats({3, 4}), floats({2, 3, 4, 5}), floats({5}), indices({3, 4}, 9)}) {
    at::Tensor i = indices({2});
    samples.push_back({"aten::index_select", {x, 0, i}});
    samples.push_back({"aten::index_select", {x, -1, indices({0})}});
    samples.push_back({"aten::index_select", {x, -1, indices({})}});
    samples.push_back({"aten::flip", {x, ints({0})}});
    samples.push_back({"aten::flip", {x, ints({-1})}});
    samples.push_back({"aten::roll", {x, ints({1}), ints({0})}});
    samples.push_back({"aten::roll", {x, ints({2})}});
    samples.push_back({"aten::rot90", {x}});
    samples.push_back({"aten::take", {x, indices({2, 3})}});
    samples.push_back({"aten::put", {x, indices({2}), x.flatten().slice(0, 0, 2)}});
    samples.push_back({"aten::index.Tensor", {x, optional_tensors({i})}});
    samples.push_back({"aten::index.Tensor", {x, optional_tensors({i, indices({3, 1})})}});
    samples.push_back({"aten::index.Tensor", {x, optional_tensors({std::nullopt, i})}});
    samples.push_back({"aten::_unsafe_index.Tensor", {x, optional_tensors({std::nullopt, i})}});
    for (auto [a, b] : std::vector<std::pair<at::Tensor, at::Tensor>>{
             {indices({2, 6}), indices({2, 6})},
             {indices({2, 6}), indices({6})},
             {indices({2, 1}), indices({6})},
             {indices({6, 2}).t(), indices({})},
             {indices({6, 2}).t(), indices({6, 2}).t()},
             {indices({6, 2}).t(), indices({2, 6})},
             {indices({2, 6}).to(at::kInt), indices({6}).to(at::kInt)},
             {indices({0}), indices({0})},
             {indices({6, 2}).to(at::kInt).t(), indices({2, 6})}})
      for (auto places :
           std::vector<std::vector<std::optional<at::Tensor>>>{{a},
                                                               {a, b},
                                                               {std::nullopt, a},
                                                               {std::nullopt, a, b},
                                                               {std::nullopt, std::nullopt, a, b},
                                                               {a, std::nullopt, b},
                                                               {std::nullopt, a, std::nullopt, b},
                                                               {a, b, a}})
        samples.push_back({"aten::index.Tensor", {x, optional_tensors(places)}});
    samples.push_back({"aten::index_put", {x, optional_tensors({i}), x.slice(0, 0, 2).clone(), true}});
    samples.push_back({"aten::index_put_", {x, optional_tensors({i}), x.slice(0, 0, 2).clone(), true}});
    samples.push_back({"aten::_index_put_impl_", {x, optional_tensors({i}), x.slice(0, 0, 2).clone(), true}});
    samples.push_back(
        {"aten::_unsafe_index_put", {x, optional_tensors({i}), x.slice(0, 0, 2).clone(), true}});
    samples.push_back({"aten::index_fill.int_Scalar", {x, 0, i, 1}});
    samples.push_back({"aten::index_fill.int_Tensor", {x, 0, i, x.flatten()[0].clone()}});
    samples.push_back({"aten::index_add", {x, 0, i, x.slice(0, 0, 2).clone()}});
    for (const char* op : {"aten::index_add", "aten::index_add_"})
      samples.push_back({op, {x, 0, indices({0}), x.slice(0, 0, 0)}});
    for (const char* op : {"aten::index_reduce", "aten::index_reduce_"})
      for (int64_t count : {2, 0})
        samples.push_back({op, {x, 0, indices({count}), x.slice(0, 0, count).clone(), "mean"}});
    samples.push_back({"aten::index_copy", {x, 0, i, x.slice(0, 0, 2).clone()}});
    samples.push_back({"aten::gather", {x, 0, indices(x.sizes())}});
    samples.push_back({"aten::scatter.src", {x, 0, indices(x.sizes()), at::zeros_like(x)}});
    samples.push_back({"aten::scatter.value", {x, 0, indices(x.sizes()), 1}});
    samples.push_back({"aten::scatter_add", {x, 0, indices(x.sizes()), at::zeros_like(x)}});
    samples.push_back({"aten::scatter_reduce.two", {x, 0, indices(x.sizes()), at::zeros_like(x), "sum"}});
    samples.push_back({"aten::masked_scatter", {x, at::ones(x.sizes(), at::kBool), at::zeros_like(x)}});
    samples.push_back({"aten::masked_scatter", {x, at::ones(x.size(-1), at::kBool), at::zeros_like(x)}});
    samples.push_back({"aten::select_backward", {x.select(0, 0).clone(), ints(x.sizes().vec()), 0, 1}});
    samples.push_back(
        {"aten::slice_backward", {x.slice(0, 0, 2).clone(), ints(x.sizes().vec()), 0, 0, 2, 1}});
    samples.push_back({"aten::slice_scatter", {x, x.slice(0, 0, 2).clone(), 0, 0, 2}});
    samples.push_back({"aten::select_scatter", {x, x.select(0, 0).clone(), 0, 1}});
    samples.push_back(
        {"aten::as_strided_scatter", {x, x.flatten().slice(0, 0, 2).clone(), ints({2}), ints({1})}});
    samples.push_back({"aten::searchsorted.Tensor", {at::arange(5, at::kFloat), x}});
    samples.push_back({"aten::searchsorted.Tensor", {at::arange(5, at::kFloat), x, true}});
    samples.push_back({"aten::searchsorted.Scalar", {at::arange(5, at::kFloat), 2}});
    samples.push_back({"aten::bucketize.Tensor", {x, at::arange(5, at::kFloat)}});
    samples.push_back({"aten::bucketize.Scalar", {2, at::arange(5, at::kFloat)}});
    samples.push_back({"aten::isin.Scalar_Tensor", {2, at::arange(5, at::kFloat)}});
    samples.push_back({"aten::unfold_backward", {floats({3, 3, 2}), ints({3, 4}), 1, 2, 1}});
    samples.push_back({"aten::repeat", {x, ints({2, 1, 1, 1, 2})}});
    samples.push_back({"aten::repeat_interleave.self_int", {x, 2, 0}});
    samples.push_back({"aten::stack", {tensors({x, x}), 0}});
    samples.push_back({"aten::cat", {tensors({x, x}), 0}});
    samples.push_back({"aten::block_diag", {tensors({floats({2, 3}), floats({3, 2})})}});
    samples.push_back({"aten::tril", {x}});
    samples.push_back({"aten::diag_embed", {x}});
    if (x.dim() > 1) {
      samples.push_back({"aten::diagonal_backward", {x.diagonal().clone(), ints(x.sizes().vec()), 0, 0, 1}});
      samples.push_back({"aten::diagonal_scatter", {x, x.diagonal().clone()}});
    }
    samples.push_back({"aten::multinomial", {floats({3, 4}), 2}});
    samples.push_back({"aten::tril_indices", {3, 4}});
    samples.push_back({"aten::linspace", {0, 1, 5}});
    samples.push_back({"aten::arange.start_step", {0, 7, 2}});
    for (c10::IValue dtype : {none, c10::IValue(int64_t(at::kInt))}) {
      samples.push_back({"aten::randperm", {5, dtype}});
      samples.push_back({"aten::randperm.generator", {5, none, dtype}});
    }
    samples.push_back({"aten::segment_reduce", {floats({4, 3}), "sum", indices({2}) * 0 + 2}});
  }
  at::Tensor table = floats({7, 3});
  for (const at::Tensor& i :
       {indices({2, 5}, 7), indices({4}, 7), indices({}, 7), indices({0}, 7), indices({4}, 7).to(at::kInt)}) {
    std::vector<int64_t> sizes = i.sizes().vec();
    sizes.push_back(3);
    samples.push_back({"aten::embedding", {table, i}});
    samples.push_back({"aten::embedding_dense_backward", {floats(sizes), i, 7, -1, false}});
    samples.push_back({"aten::embedding_renorm_", {table.clone(), i, 1.0, 2.0}});
  }
  at::Tensor bag = indices({6}, 7), offsets = at::tensor(std::vector<int64_t>{0, 2, 4}),
             ends = at::tensor(std::vector<int64_t>{0, 2, 6});
  // Written out: the CPU's forward may leave it empty, and CUDA's backward kernels then read past its end.
  at::Tensor offset2bag = at::tensor(std::vector<int64_t>{0, 0, 1, 1, 2, 2});
  for (int64_t mode : {0, 1, 2}) {
    for (bool last : {false, true})
      for (int64_t padding : {-1, 2})
        for (at::Tensor where : last ? std::vector{ends, ends.to(at::kInt)}
                                     : std::vector{offsets, offsets.to(at::kInt), offsets.slice(0, 0, 1)})
          for (const char* op : {"aten::_embedding_bag", "aten::_embedding_bag_forward_only"}) {
            samples.push_back({op, {table, bag, where, false, mode, false, none, last, padding}});
            samples.push_back(
                {op, {table, bag.to(at::kInt), where, false, mode, false, none, last, padding}});
            samples.push_back(
                {op, {table, bag.slice(0, 0, 0), where * 0, false, mode, false, none, last, padding}});
            if (mode == 0)
              samples.push_back({op, {table, bag, where, false, mode, false, floats({6}), last, padding}});
          }
    auto [y, unused, size, maximum] = at::_embedding_bag(table, bag, offsets, false, mode);
    samples.push_back(
        {"aten::_embedding_bag_backward",
         {at::rand_like(y), bag, offsets, offset2bag, size, maximum, 7, false, mode, false, none}});
    samples.push_back({"aten::_embedding_bag_dense_backward",
                       {at::rand_like(y), bag, offset2bag, size, maximum, 7, false, mode, none}});
  }
  samples.push_back({"aten::_embedding_bag", {table, bag, offsets, false, 0, false, floats({6})}});
  samples.push_back({"aten::_embedding_bag_per_sample_weights_backward",
                     {floats({3, 3}), table, bag, offsets, offset2bag, 0}});
  return samples;
}

std::vector<Sample> losses() {
  std::vector<Sample> samples;
  for (int64_t reduction : {0, 1, 2}) {
    for (auto [x, t] :
         std::vector<std::pair<at::Tensor, at::Tensor>>{{floats({3, 4}), floats({3, 4})},
                                                        {floats({2, 3, 4, 5}), floats({2, 3, 4, 5})},
                                                        {floats({}), floats({})},
                                                        {floats({0, 3}), floats({0, 3})},
                                                        {floats({3, 4}), floats({4})},
                                                        {floats({4}), floats({3, 4})},
                                                        {floats({3, 1}), floats({1, 4})}}) {
      for (const char* op : {"mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"})
        samples.push_back({std::string("aten::") + op, {x, t, reduction}});
      samples.push_back({"aten::binary_cross_entropy", {x, t, none, reduction}});
      samples.push_back({"aten::binary_cross_entropy", {x, t, t, reduction}});
      samples.push_back({"aten::binary_cross_entropy_with_logits", {x, t, none, none, reduction}});
      for (const at::Tensor& g : {floats(x.sizes()), floats({}), floats({3, 4})}) {
        for (const char* op : {"mse_loss_backward", "soft_margin_loss_backward"})
          samples.push_back({std::string("aten::") + op, {g, x, t, reduction}});
        for (const char* op : {"smooth_l1_loss_backward", "huber_loss_backward"})
          samples.push_back({std::string("aten::") + op, {g, x, t, reduction, 1.0}});
        samples.push_back({"aten::binary_cross_entropy_backward", {g, x, t, none, reduction}});
        samples.push_back({"aten::binary_cross_entropy_backward", {g, x, t, t, reduction}});
      }
    }
    for (auto [x, t] : std::vector<std::pair<at::Tensor, at::Tensor>>{{floats({3, 4}), indices({3})},
                                                                      {floats({4}), indices({})}}) {
      at::Tensor g = reduction == 0 ? floats(t.sizes()) : floats({}), is_target = floats(x.sizes()),
                 total = floats({});
      samples.push_back({"aten::nll_loss_forward", {x, t, none, reduction, -100}});
      samples.push_back({"aten::nll_loss_backward", {g, x, t, none, reduction, -100, total}});
      samples.push_back({"aten::multi_margin_loss", {x, t, 1, 1, none, reduction}});
      samples.push_back({"aten::multi_margin_loss_backward", {g, x, t, 1, 1, none, reduction}});
      at::Tensor labels = indices(x.sizes(), 3);
      samples.push_back({"aten::multilabel_margin_loss_forward", {x, labels, reduction}});
      samples.push_back({"aten::multilabel_margin_loss_backward", {g, x, labels, reduction, is_target}});
    }
    at::Tensor x = floats({2, 3, 4, 5}), t = indices({2, 4, 5});
    samples.push_back({"aten::nll_loss2d_forward", {x, t, none, reduction, -100}});
    samples.push_back({"aten::nll_loss2d_forward", {x, t, floats({3}), reduction, -100}});
    samples.push_back(
        {"aten::nll_loss2d_backward",
         {reduction == 0 ? floats({2, 4, 5}) : floats({}), x, t, none, reduction, -100, floats({})}});
  }
  at::Tensor log_probs = at::log_softmax(floats({6, 2, 5}), -1), targets = indices({2, 3}, 4) + 1;
  auto [loss, alpha] = at::_ctc_loss(log_probs, targets, at::IntArrayRef{6, 5}, at::IntArrayRef{3, 2});
  samples.push_back({"aten::_ctc_loss", {log_probs, targets, ints({6, 5}), ints({3, 2})}});
  samples.push_back({"aten::_ctc_loss_backward",
                     {floats({2}), log_probs, targets, ints({6, 5}), ints({3, 2}), loss, alpha, 0}});
  return samples;
}

}  // namespace tandem::samples
