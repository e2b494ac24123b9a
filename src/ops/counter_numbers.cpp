#include "ops/counter_numbers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace tandem {

PhiloxWords philox(PhiloxWords counter, std::array<uint32_t, 2> key) {
  constexpr int rounds = 10;
  constexpr uint64_t multipliers[] = {0xD2511F53, 0xCD9E8D57};
  constexpr uint32_t steps[] = {0x9E3779B9, 0xBB67AE85};  // bits of the golden ratio, and of the root of 3
  for (int round = 0; round < rounds; ++round) {
    const uint64_t first = multipliers[0] * counter[0], second = multipliers[1] * counter[2];
    counter = {uint32_t(second >> 32) ^ counter[1] ^ key[0], uint32_t(second),
               uint32_t(first >> 32) ^ counter[3] ^ key[1], uint32_t(first)};
    for (size_t i = 0; i < key.size(); ++i) key[i] += steps[i];
  }
  return counter;
}

namespace {

/// A double takes two of the four words.
template <class T>
using Numbers = std::array<T, sizeof(T) == 8 ? 2 : 4>;

double fraction(uint32_t high, uint32_t low) { return double(uint64_t(high) << 21 | low >> 11) * 0x1p-53; }

/// As many bits as the dtype holds exactly, so that none is rounded up to 1.
template <class T>
Numbers<T> uniforms(const PhiloxWords& words) {
  if constexpr (std::is_same_v<T, double>) {
    return {fraction(words[0], words[1]), fraction(words[2], words[3])};
  } else {
    constexpr int digits = std::numeric_limits<T>::digits;
    constexpr float step = 1.f / (1 << digits);
    Numbers<T> made;
    for (size_t i = 0; i < made.size(); ++i) made[i] = T(float(words[i] >> (32 - digits)) * step);
    return made;
  }
}

/// By the method of Box and Muller; `radius` lies in (0, 1], `angle` in [0, 1).
template <class T, class F>
void add_normals(T* made, F radius, F angle) {
  const F length = std::sqrt(-2 * std::log(radius)), turn = 2 * std::numbers::pi_v<F> * angle;
  made[0] = T(length * std::cos(turn));
  made[1] = T(length * std::sin(turn));
}

template <class T>
Numbers<T> normals(const PhiloxWords& words) {
  Numbers<T> made;
  if constexpr (std::is_same_v<T, double>) {
    add_normals(made.data(), 1 - fraction(words[0], words[1]), fraction(words[2], words[3]));
  } else {
    for (size_t i = 0; i < made.size(); i += 2)
      add_normals(&made[i], (float(words[i]) + 1) * 0x1p-32f, float(words[i + 1] >> 8) * 0x1p-24f);
  }
  return made;
}

/// Every four words have a counter of their own: their place in the draw, the draw's number, the seed's
/// offset.
template <class T>
void fill(const at::Tensor& result, const at::Tensor& seed, int64_t stream,
          Numbers<T> (*numbers)(const PhiloxWords&)) {
  constexpr int64_t width = std::tuple_size_v<Numbers<T>>, grain = 1024;
  const int64_t count = result.numel(), blocks = (count + width - 1) / width;
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  TORCH_CHECK(blocks <= most && stream >= 0 && stream <= most, "counter-based random numbers: draw ", stream,
              " of ", count, " numbers is beyond what a counter counts");
  const int64_t* given = seed.const_data_ptr<int64_t>();
  const auto key = uint64_t(given[0]), offset = uint64_t(given[1]);
  T* const data = result.mutable_data_ptr<T>();
  at::parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const PhiloxWords counter{uint32_t(block), uint32_t(stream), uint32_t(offset), uint32_t(offset >> 32)};
      const Numbers<T> made = numbers(philox(counter, {uint32_t(key), uint32_t(key >> 32)}));
      std::copy_n(made.begin(), std::min(width, count - block * width), data + block * width);
    }
  });
}

at::Tensor shape(const at::Tensor&, int64_t, at::IntArrayRef size, at::ScalarType dtype, c10::Device) {
  return at::empty(size, at::TensorOptions().dtype(dtype).device(at::kMeta));
}

// Computed on the CPU wherever they are wanted: the same numbers everywhere.

at::Tensor counter_uniform(const at::Tensor& seed, int64_t stream, at::IntArrayRef size, at::ScalarType dtype,
                           c10::Device device) {
  const at::Tensor made = at::empty(size, at::TensorOptions().dtype(dtype));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, "tandem::counter_uniform",
                                  [&] { fill<scalar_t>(made, seed, stream, uniforms<scalar_t>); });
  return made.to(device);
}

at::Tensor counter_normal(const at::Tensor& seed, int64_t stream, at::IntArrayRef size, at::ScalarType dtype,
                          c10::Device device) {
  const at::Tensor made = at::empty(size, at::TensorOptions().dtype(dtype));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, "tandem::counter_normal",
                                  [&] { fill<scalar_t>(made, seed, stream, normals<scalar_t>); });
  return made.to(device);
}

/// A GPU's generator is itself a key and an offset. Ours is another key, since libtorch counts with that one.
std::pair<uint64_t, uint64_t> draw_seed(at::Generator generator) {
  std::lock_guard lock(generator.mutex());
  if (generator.device().is_cpu()) {
    auto* engine = at::check_generator<at::CPUGeneratorImpl>(generator);
    const uint64_t key = engine->random64();
    return {key, engine->random64()};
  }
  constexpr uint64_t ours = 0x74616e64656d, taken = 4;  // libtorch takes multiples of 4
  const uint64_t offset = generator.get_offset();
  generator.set_offset(offset + taken);
  return {generator.current_seed() ^ ours, offset};
}

at::Tensor counter_seed(c10::Device device) {
  const auto [key, offset] = draw_seed(at::globalContext().defaultGenerator(device));
  at::Tensor seed = at::empty({2}, at::kLong);
  seed.mutable_data_ptr<int64_t>()[0] = int64_t(key);
  seed.mutable_data_ptr<int64_t>()[1] = int64_t(offset);
  return seed;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(tandem, library) {
  library.def("counter_seed(Device device) -> Tensor", {at::Tag::nondeterministic_seeded});
  library.impl("counter_seed", c10::DispatchKey::CompositeExplicitAutograd, counter_seed);
  library.def(
      "counter_uniform(Tensor seed, int stream, int[] size, ScalarType dtype, Device device) -> Tensor");
  library.impl("counter_uniform", c10::DispatchKey::CompositeExplicitAutograd, counter_uniform);
  library.impl("counter_uniform", c10::DispatchKey::Meta, shape);
  library.def(
      "counter_normal(Tensor seed, int stream, int[] size, ScalarType dtype, Device device) -> Tensor");
  library.impl("counter_normal", c10::DispatchKey::CompositeExplicitAutograd, counter_normal);
  library.impl("counter_normal", c10::DispatchKey::Meta, shape);
}

const c10::OperatorHandle& counter_seed_operator() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("tandem::counter_seed", "");
  return op;
}

}  // namespace tandem
