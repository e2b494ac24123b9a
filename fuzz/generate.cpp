#include "fuzz/generate.h"

#include "fuzz/state.h"
#include "fuzz/views.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

namespace tandem::fuzz {

namespace {

constexpr int64_t most_elements = 120;

/// Too large, or of negative sizes: libtorch expands a tensor without dimensions to {-1}.
bool is_unfit(const at::Tensor& t) {
  return t.defined() && (t.numel() > most_elements ||
                         std::any_of(t.sizes().begin(), t.sizes().end(), [](int64_t s) { return s < 0; }));
}

/// A product into memory of a factor, which is given other sizes first: libtorch reads what nobody has
/// written there.
bool resizes_a_factor(const Row& row, const Tensors& t) {
  if (!std::string_view(row.text).starts_with("at::matmul_out")) return false;
  auto memory = [](const at::Tensor& x) {
    return x.defined() && x.has_storage() ? x.storage().unsafeGetStorageImpl() : nullptr;
  };
  auto shares = [&](const at::Tensor& factor) {
    return memory(factor) != nullptr && memory(factor) == memory(t[0]);
  };
  if (!t[1].defined() || !t[2].defined() || (!shares(t[1]) && !shares(t[2]))) return false;
  try {
    at::NoGradGuard no_grad;
    return at::matmul(t[1], t[2]).sizes() != t[0].sizes();
  } catch (const std::exception&) {
    return false;
  }
}

/// Elements that an empty tensor does not have: eager has no gradient of them until they are written, and
/// then one.
bool reaches_out_of_nothing(const Row& row, const Tensors& t) {
  return std::string_view(row.text).starts_with("t[0].as_strided") && t[0].defined() && t[0].numel() == 0;
}

/// SplitMix64: distributions of the standard library differ from one to the next, and a seed must mean one
/// program everywhere.
class Dice {
 public:
  Dice(uint64_t seed, uint64_t number)
      : state_(seed * 0x9E3779B97F4A7C15ull + number * 0xD1B54A32D192ED03ull) {
    (void)next();
  }
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return next() % n; }
  bool chance(int percent) { return below(100) < size_t(percent); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  uint64_t state_;
};

class Generator {
 public:
  Generator(uint64_t seed, uint64_t number) : dice_(seed, number) {}

  Program run() {
    forget_state();
    program_.data = dice_.below(1u << 20);
    choose_character();
    make_given();
    Scene scene = make_scene(program_, program_.data);
    pool_ = scene.pool;
    const size_t steps = 1 + dice_.below(dice_.chance(20) ? 14 : 7);
    for (size_t k = 0; k < steps && !refused_; ++k) add_step();
    choose_outputs();
    // Gradients through hooks are not differentiated again.
    const bool has_hooks = std::any_of(program_.steps.begin(), program_.steps.end(),
                                       [](const Step& step) { return rows()[step.row].kind == Kind::Hook; });
    program_.higher_orders = !has_hooks && std::none_of(pool_.begin(), pool_.end(), [](const at::Tensor& t) {
      return t.defined() && t.is_floating_point() && t.scalar_type() != at::kDouble;
    });
    return std::move(program_);
  }

 private:
  /// A program is mostly of one dtype, and has its own taste for writes.
  void choose_character() {
    main_dtype_ = dice_.chance(50) ? at::kDouble : at::kFloat;
    const int writes = dice_.pick(std::vector<int>{0, 0, 1, 2, 4});
    // What a history with code of its own keeps alive is found by a second trace, in which state would be
    // kept twice.
    const bool keeps = dice_.chance(6), sets = !keeps && dice_.chance(6);
    const bool hooks = !keeps && dice_.chance(8), customs = !keeps && dice_.chance(12);
    const std::map<Kind, int> taste = {{Kind::Value, 2},
                                       {Kind::View, 3},
                                       {Kind::Write, 2 * writes},
                                       {Kind::Random, dice_.chance(60) ? 2 : 0},
                                       {Kind::Shape, std::min(writes, 1)},
                                       {Kind::Grad, dice_.chance(25) ? 8 : 0},
                                       {Kind::State, keeps ? 8 : 0},
                                       {Kind::Effect, sets ? 6 : 0},
                                       {Kind::Hook, hooks ? 12 : 0},
                                       {Kind::Custom, customs ? 8 : 0}};
    for (size_t r = 0; r < rows().size(); ++r)
      for (int w = 0; w < rows()[r].weight * taste.at(rows()[r].kind); ++w) lots_.push_back(r);
  }

  void make_given() {
    static const std::vector<Ints> shapes = {{3},       {2, 3}, {3, 3}, {2, 2, 3}, {4},    {2, 2}, {3, 2},
                                             {2, 1, 2}, {},     {1},    {0},       {0, 3}, {4, 4}};
    shape_ = dice_.pick(shapes);
    if (dice_.chance(50)) shape_ = dice_.pick(std::vector<Ints>{{3, 3}, {2, 3}, {3}});
    requires_grad_ = dice_.chance(85);
    const size_t count = 1 + dice_.below(4);
    for (size_t k = 0; k < count; ++k) program_.given.push_back(make_one(k));
    next_place_ = program_.given.size();
  }

  Given make_one(size_t k) {
    Given given;
    given.captured = dice_.chance(12);
    if (k > 0 && dice_.chance(7)) {
      given.origin = dice_.chance(50) ? Origin::Same : Origin::View;
      given.of = dice_.below(k);
      given.view = int64_t(dice_.below(given_views().size()));
      if (given.origin == Origin::Same) given.captured = program_.given[given.of].captured;
      // A view that the captured tensor could be seen through must outlive a call as well.
      if (!program_.given[given.of].captured) given.captured = false;
      if (fits(given)) return given;
      given = {};
    }
    given.origin = dice_.chance(50) && !given.captured ? Origin::Computed : Origin::Leaf;
    given.dtype = main_dtype_;
    if (dice_.chance(12))
      given.dtype = dice_.pick(
          std::vector<at::ScalarType>{at::kLong, at::kBool, at::kFloat, at::kDouble, at::kBFloat16});
    given.sizes = related_shape();
    if (dice_.chance(20))
      given.layout = dice_.pick(std::vector<Layout>{Layout::Transposed, Layout::Strided, Layout::Expanded});
    given.requires_grad = requires_grad_ && dice_.chance(75) && at::isFloatingType(given.dtype);
    return given;
  }

  /// Whether the view can be made.
  bool fits(const Given& given) {
    Program probe = program_;
    probe.given.push_back(given);
    try {
      make_scene(probe, 0);
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

  /// The program's shape, or one that is broadcast to it.
  Ints related_shape() {
    Ints sizes = shape_;
    if (dice_.chance(15) && !sizes.empty()) sizes[dice_.below(sizes.size())] = 1;
    if (dice_.chance(10) && !sizes.empty()) sizes.erase(sizes.begin());
    return sizes;
  }

  size_t pick_place() {
    std::vector<size_t> places;
    for (size_t k = 0; k < pool_.size(); ++k)
      if (pool_[k].defined()) places.push_back(k);
    if (places.empty()) return 0;
    // What was made last is used more, so that steps build on each other.
    return dice_.chance(40) ? places[places.size() - 1 - dice_.below(std::min<size_t>(places.size(), 3))]
                            : dice_.pick(places);
  }

  Step roll_step() {
    Step step;
    step.row = dice_.pick(lots_);
    const Row& row = rows()[step.row];
    for (size_t a = 0; a < row.tensors; ++a) step.arguments.push_back(pick_place());
    const int64_t dim = step.arguments.empty() ? 1 : std::max<int64_t>(pool_[step.arguments[0]].dim(), 1);
    for (const char* letter = row.ints; *letter != 0; ++letter) {
      if (*letter == 'd')
        step.ints.push_back(int64_t(dice_.below(size_t(dim))));
      else if (*letter == 'x')
        step.ints.push_back(pool_[step.arguments[0]].dim() == 0
                                ? 0
                                : int64_t(dice_.below(size_t(
                                      std::max<int64_t>(pool_[step.arguments[0]].size(step.ints[0]), 1)))));
      else
        step.ints.push_back(int64_t(dice_.below(4)));
    }
    step.no_grad = dice_.chance(6);
    return step;
  }

  /// Rolls until a step works on what the pool holds now; now and then one that does not is kept, and ends
  /// the program.
  void add_step() {
    for (int attempt = 0; attempt < 8; ++attempt) {
      Step step = roll_step();
      Tensors arguments, results;
      for (size_t place : step.arguments) arguments.push_back(pool_[place]);
      if (resizes_a_factor(rows()[step.row], arguments) ||
          reaches_out_of_nothing(rows()[step.row], arguments))
        continue;
      try {
        at::AutoGradMode mode(!step.no_grad);
        results = rows()[step.row].run(arguments, step.ints);
      } catch (const std::exception&) {
        if (!dice_.chance(1)) continue;
        refused_ = true;
      }
      if (std::any_of(results.begin(), results.end(), is_unfit)) continue;
      for (at::Tensor& result : results) {
        step.results.push_back(next_place_++);
        pool_.push_back(result);
      }
      program_.steps.push_back(std::move(step));
      return;
    }
  }

  void choose_outputs() {
    const size_t count = 1 + dice_.below(4);
    for (size_t k = 0; k < count; ++k)
      program_.outputs.push_back(k == 0 || dice_.chance(50)
                                     ? pool_.size() - 1 - dice_.below(std::min<size_t>(pool_.size(), 3))
                                     : dice_.below(pool_.size()));
    if (dice_.chance(10)) program_.outputs.push_back(program_.outputs.front());
  }

  Dice dice_;
  Program program_;
  at::ScalarType main_dtype_ = at::kFloat;
  std::vector<size_t> lots_;
  Ints shape_;
  bool requires_grad_ = true, refused_ = false;
  Tensors pool_;
  size_t next_place_ = 0;
};

}  // namespace

Program generate(uint64_t seed, uint64_t number) { return Generator(seed, number).run(); }

}  // namespace tandem::fuzz
