// Matrix products into memory that is kept.
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <array>

#include "backends/kept_memory.h"
#include "backends/products.h"
#include "ops/by_operator.h"
#include "ops/facts.h"

namespace tandem {
namespace {

struct Operands {
  const at::Tensor &added, &left, &right;
  const at::Scalar &beta, &alpha;
};

struct ProductRow {
  std::string_view name;
  bool adds;
  void (*compute)(at::Tensor& into, const Operands& operands);
  size_t tensors() const { return adds ? 3 : 2; }
};

constexpr std::array<ProductRow, 4> products = {{
    {"aten::mm", false, [](at::Tensor& into, const Operands& o) { at::mm_out(into, o.left, o.right); }},
    {"aten::bmm", false, [](at::Tensor& into, const Operands& o) { at::bmm_out(into, o.left, o.right); }},
    {"aten::addmm", true,
     [](at::Tensor& into, const Operands& o) {
       at::addmm_out(into, o.added, o.left, o.right, o.beta, o.alpha);
     }},
    {"aten::baddbmm", true,
     [](at::Tensor& into, const Operands& o) {
       at::baddbmm_out(into, o.added, o.left, o.right, o.beta, o.alpha);
     }},
}};

const ProductRow* find_product(const c10::OperatorHandle& op) {
  const std::string name = full_name(op);
  const auto row =
      std::find_if(products.begin(), products.end(), [&](const auto& r) { return r.name == name; });
  return row == products.end() ? nullptr : &*row;
}

const ProductRow* product_row(const c10::OperatorHandle& op) {
  static ByOperator<const ProductRow*> known;
  return known.of(op, find_product);
}

class ProductCall final : public Call {
 public:
  ProductCall(const CallSite& site, const ProductRow& row)
      : row_(row), result_(std::get<int32_t>(site.results[0])) {
    for (size_t t = 0; t < row.tensors(); ++t) tensors_.push_back(std::get<TensorSlot>(site.arguments[t]));
    if (!row.adds) return;
    beta_ = std::get<c10::IValue>(site.arguments[3]).toScalar();
    alpha_ = std::get<c10::IValue>(site.arguments[4]).toScalar();
  }

  void run(at::Tensor* registers, torch::jit::Stack&) const override {
    const at::Tensor &added = tensors_[0].peek(registers),
                     &left = tensors_[tensors_.size() - 2].peek(registers),
                     &right = tensors_.back().peek(registers);
    c10::SmallVector<int64_t, 3> sizes(left.sizes()), strides(sizes.size(), 1);
    sizes.back() = right.size(-1);
    for (size_t d = sizes.size() - 1; d > 0; --d)
      strides[d - 1] = strides[d] * std::max<int64_t>(1, sizes[d]);
    at::Tensor made = make_from_kept(sizes, strides, left.scalar_type());
    row_.compute(made, {added, left, right, beta_, alpha_});
    for (const TensorSlot& slot : tensors_) slot.release(registers);
    if (result_ >= 0) registers[result_] = std::move(made);
  }

 private:
  const ProductRow& row_;
  const int32_t result_;
  std::vector<TensorSlot> tensors_;
  at::Scalar beta_, alpha_;
};

}  // namespace

bool is_product(const Graph& graph, const Node& node) {
  if (!product_row(node.op) || node.state) return false;
  const auto* made = std::get_if<Value>(&node.results[0]);
  if (!made || !*made) return false;
  const TensorMeta& meta = graph.meta(*made);
  return meta.device.is_cpu() && (meta.dtype == at::kFloat || meta.dtype == at::kDouble);
}

std::unique_ptr<Call> make_product_call(const CallSite& site) {
  const ProductRow* row = product_row(site.op);
  if (!row || site.draws_on) return nullptr;
  for (size_t i = 0; i < site.arguments.size(); ++i)
    if (std::holds_alternative<c10::IValue>(site.arguments[i]) != (i >= row->tensors())) return nullptr;
  return std::make_unique<ProductCall>(site, *row);
}

}  // namespace tandem
