#include "backends/interpreter.h"
#include "backends/products.h"
#include "backends/side_by_side.h"
#include "loops/parallel.h"

namespace tandem {
namespace {

class SideBySideCall final : public Call {
 public:
  SideBySideCall(const CallSite& site, const SideBySide& products)
      : inputs_(std::get<std::vector<TensorSlot>>(site.arguments[0])),
        results_(std::get<std::vector<int32_t>>(site.results[0])) {
    for (const Graph& product : products) {
      products_.emplace_back(product, Lifetime::LastUse, make_product_call);
      reads_.push_back(product.inputs().size());
    }
  }

  void run(at::Tensor* registers, torch::jit::Stack&) const override {
    std::vector<Tensors> given(products_.size()), made(products_.size());
    auto slot = inputs_.begin();
    for (size_t p = 0; p < products_.size(); ++p)
      for (size_t r = 0; r < reads_[p]; ++r) given[p].push_back((slot++)->peek(registers));
    for (const TensorSlot& input : inputs_) input.release(registers);
    const Running running{products_, given.data(), made.data()};
    loops::in_parallel(int64_t(products_.size()), 1, Running::part, &running);
    for (size_t p = 0; p < products_.size(); ++p)
      if (results_[p] >= 0) registers[results_[p]] = std::move(made[p][0]);
  }

 private:
  struct Running {
    const std::vector<Interpreter>& products;
    Tensors *given, *made;

    static void part(const void* context, int64_t begin, int64_t end) {
      const auto& [products, given, made] = *static_cast<const Running*>(context);
      for (int64_t p = begin; p < end; ++p) made[p] = products[size_t(p)].run(std::move(given[p]));
    }
  };

  const std::vector<TensorSlot> inputs_;
  const std::vector<int32_t> results_;
  std::vector<Interpreter> products_;
  std::vector<size_t> reads_;  ///< how many tensors each product reads
};

}  // namespace

std::unique_ptr<Call> make_side_by_side_call(const CallSite& site, const SideBySide& products) {
  return std::make_unique<SideBySideCall>(site, products);
}

}  // namespace tandem
