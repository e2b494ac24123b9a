// Programs that compute in threads of their own run as they are.
#include <thread>

#include "support/compare.h"

namespace tandem {
namespace {

at::Tensor in_a_thread(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& compute) {
  at::Tensor result;
  std::thread([&] { result = compute(x); }).join();
  return result;
}

TEST(OtherThreads, TheProgramRunsAsItIs) {
  const std::pair<const char*, std::function<at::Tensor(const at::Tensor&)>> programs[] = {
      {"a product", [](const at::Tensor& x) { return x * 2; }},
      {"a write", [](const at::Tensor& x) { return x.clone().mul_(3); }},
      {"a view", [](const at::Tensor& x) { return x.view(-1)[0]; }},
      {"a list", [](const at::Tensor& x) { return torch::cat({x, x}); }},
      {"indices", [](const at::Tensor& x) { return x.index({torch::tensor({0})}); }},
      {"data", [](const at::Tensor& x) { return x.sum().item<float>() > 1 ? x : -x; }},
  };
  for (const auto& [name, compute] : programs) {
    SCOPED_TRACE(name);
    auto function = [compute = compute](const Tensors& in) {
      return Tensors{in_a_thread(in[0], compute) + 1};
    };
    Compiled fast(function, {});
    const at::Tensor x = torch::ones({3}).requires_grad_();
    for (int call = 0; call < 2; ++call) EXPECT_TRUE(at::equal(fast({x})[0], function({x})[0]));
    EXPECT_TRUE(test::contains(fast.explain({x}).eager_reason, "threads of its own"))
        << fast.explain({x}).eager_reason;
  }
}

}  // namespace
}  // namespace tandem
