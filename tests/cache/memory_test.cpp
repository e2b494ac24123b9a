// What a program says about what it keeps is part of its key, and what the cache gives back heeds it.
#include <set>

#include "cache/scratch_folder.h"
#include "support/compare.h"

namespace tandem {
namespace {

using test::same_values;

at::Tensor block(const at::Tensor& x) { return torch::dropout(x.exp(), 0.5, true).sin() * x; }

at::Tensor checkpointed(const at::Tensor& x) {
  const at::Tensor y = checkpoint(block, must_save(x.cos() * x).sin());
  return prefer_recompute(y * y) * y;
}

CostModel costs(std::string name = {}, std::string version = {}) {
  return {[](const Graph&, const Node&) { return 1e-3; }, std::move(name), std::move(version)};
}

}  // namespace

TEST(Key, CheckpointsAndMarksAreInIt) {
  const at::Tensor x = torch::randn(4).requires_grad_();
  auto key = [&](const std::function<at::Tensor(const at::Tensor&)>& fn) {
    return compile(fn).explain(x).key;
  };
  const std::set<std::string> all{key([](const at::Tensor& in) { return in.exp().sin(); }),
                                  key([](const at::Tensor& in) { return must_save(in.exp()).sin(); }),
                                  key([](const at::Tensor& in) { return prefer_recompute(in.exp()).sin(); }),
                                  key([](const at::Tensor& in) {
                                    return checkpoint([](const at::Tensor& y) { return y.exp(); }, in).sin();
                                  }),
                                  key([](const at::Tensor& in) {
                                    return checkpoint([](const at::Tensor& y) { return y.exp().sin(); }, in);
                                  })};
  EXPECT_EQ(all.size(), 5u);
  EXPECT_FALSE(all.contains(""));
}

TEST(Memory, CheckpointsAndMarksAreFoundAgain) {
  ScratchFolder folder;
  Options options{.must_compile = true};
  options.cache.directory = folder.path();
  const at::Tensor x = torch::randn({4, 8}).requires_grad_();
  std::vector<at::Tensor> gradients;
  std::vector<std::string> reasons;
  std::vector<int64_t> kept;
  for (int run = 0; run < 2; ++run) {
    reset();
    auto fast = compile(checkpointed, options);
    const uint64_t hits = test::counter("cache_hit");
    torch::manual_seed(0);
    gradients.push_back(torch::autograd::grad({fast(x).sum()}, {x})[0]);
    EXPECT_EQ(test::counter("cache_hit") - hits, run);
    const Explanation explained = fast.explain(x);
    kept.push_back(explained.saved_bytes);
    for (const SavedValue& saved : explained.saved)
      if (saved.why == "marked must_save") reasons.push_back(saved.op);
  }
  torch::manual_seed(0);
  EXPECT_TRUE(same_values(gradients[0], torch::autograd::grad({checkpointed(x).sum()}, {x})[0]));
  EXPECT_TRUE(same_values(gradients[1], gradients[0]));
  EXPECT_EQ(kept[1], kept[0]);
  EXPECT_EQ(reasons, std::vector<std::string>(2, "aten::mul.Tensor"));
}

TEST(Memory, CostModelsAreCachedWhereTheyHaveANameAndAVersion) {
  ScratchFolder folder;
  Options options{.partitioner = "min_cut", .memory_budget = 0};
  options.cache.directory = folder.path();
  const at::Tensor x = torch::randn({4, 8}).requires_grad_();
  auto explained = [&](CostModel model) {
    options.cost_model = std::move(model);
    return compile(block, options).explain(x);
  };
  EXPECT_NE(explained(costs()).bypass_reason.find("cost model"), std::string::npos);
  const Explanation first = explained(costs("mine", "1")), second = explained(costs("mine", "2"));
  EXPECT_EQ(first.bypass_reason + second.bypass_reason, "");
  EXPECT_NE(first.key, second.key);
  EXPECT_EQ(first.key, explained(costs("mine", "1")).key);
}

}  // namespace tandem
