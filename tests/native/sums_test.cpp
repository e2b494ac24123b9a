// How far sums of many numbers are off, against eager's.
#include "loops/kernels.h"
#include "native/launches.h"

#include <ATen/ATen.h>

namespace tandem::native {
namespace {

loops::Kernel sum_kernel(loops::Type type, bool lane_kept, int32_t width) {
  loops::Kernel kernel = loops::sum_of_rows(type, lane_kept);
  kernel.width = width;
  return kernel;
}

/// Of x along dimension 1, or 0 where lanes are kept.
at::Tensor summed(at::Tensor x, bool lane_kept, int32_t width) {
  const int64_t kept = x.size(lane_kept ? 1 : 0), reduced = x.size(lane_kept ? 0 : 1);
  at::Tensor out = at::empty({kept}, x.options());
  const loops::Type type = x.scalar_type() == at::kFloat ? loops::Type::F32 : loops::Type::F64;
  const CodePointer code = code_of(std::vector{sum_kernel(type, lane_kept, width)}).front();
  const int64_t shape[] = {kept, 0, kept, reduced, x.stride(lane_kept ? 1 : 0), x.stride(lane_kept ? 0 : 1),
                           1,    0};
  void* const buffers[] = {x.data_ptr(), out.data_ptr()};
  code->entry()(buffers, shape, nullptr, 0, lane_kept ? 1 : kept);
  return out;
}

double error_of(const at::Tensor& sum, const at::Tensor& exact, const at::Tensor& sizes) {
  return ((sum.to(at::kDouble) - exact).abs() / sizes).max().item<double>();
}

/// Errors as parts of the sum of all sizes, at most four times eager's or as many halves of a unit.
void expect_accurate(const at::Tensor& x, bool lane_kept) {
  const int64_t dim = lane_kept ? 0 : 1;
  const at::Tensor exact = x.to(at::kDouble).sum(dim), sizes = x.to(at::kDouble).abs().sum(dim);
  const double unit = x.scalar_type() == at::kFloat ? 0x1p-24 : 0x1p-53;
  const double of_eager = error_of(x.sum(dim), exact, sizes);
  for (int32_t width : {64, 32, 16, 8, 1})
    EXPECT_LE(error_of(summed(x, lane_kept, width), exact, sizes), 4 * std::max(of_eager, unit))
        << "sum along " << dim << " of " << x.sizes() << " in " << width << " lanes; eager's is " << of_eager;
}

TEST(Sums, OfColumnsAreAsAccurateAsEagers) {
  NEEDS_COMPILER();
  at::manual_seed(1);
  for (int64_t rows : {100, 8192, 50'000}) expect_accurate(at::rand({rows, 200}), true);
  for (int64_t rows : {100, 8192, 50'000}) expect_accurate(at::randn({rows, 200}), true);
}

TEST(Sums, OfRowsAreAsAccurateAsEagers) {
  NEEDS_COMPILER();
  at::manual_seed(2);
  for (int64_t columns : {100, 8192, 3'000'000}) expect_accurate(at::rand({3, columns}), false);
  for (int64_t columns : {100, 8192, 3'000'000}) expect_accurate(at::randn({3, columns}), false);
}

TEST(Sums, OfAllElementsAreAsAccurateAsEagers) {
  NEEDS_COMPILER();
  const at::Tensor x = at::full({8192, 1024}, 0.1f);
  loops::Kernel kernel = loops::sum_of_rows(loops::Type::F32, false);
  kernel.reduced = 2;
  kernel.width = 32;
  at::Tensor out = at::empty({1});
  const int64_t shape[] = {1, 0, 1, 8192, 1024, 0, 1024, 1, 0, 0, 0};
  void* const buffers[] = {x.data_ptr(), out.data_ptr()};
  code_of(std::vector{kernel}).front()->entry()(buffers, shape, nullptr, 0, 1);
  const double exact = 8192 * 1024 * double{0.1f}, of_eager = std::abs(x.sum().item<double>() - exact);
  EXPECT_LE(std::abs(out.item<double>() - exact), std::max(4 * of_eager, 4 * 0x1p-24 * exact));
}

}  // namespace
}  // namespace tandem::native
