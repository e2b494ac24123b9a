#include "loops/arrange.h"

#include <algorithm>

#include "base/processor.h"
#include "loops/cost.h"
#include "loops/loose.h"
#include "loops/operators.h"

namespace tandem::loops {
namespace {

/// Below so many evaluations threads cost more than they give.
constexpr int64_t least_for_threads = 32768;
/// So many units a thread keep all of them busy to the end.
constexpr int64_t units_for_thread = 8;
/// Elements of lanes that a unit takes along.
constexpr int64_t lanes_of_unit = 4096;

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::optional<size_t> last_loop(const LoopNest& nest, bool reduced) {
  for (size_t loop = nest.size(); loop-- > 0;)
    if (nest[loop].reduced == reduced) return loop;
  return std::nullopt;
}

/// How many elements lie beside each other along a loop.
int64_t neighbours(const Loose& loose, std::optional<size_t> loop) {
  int64_t count = 0;
  for (const Loose::Slot& slot : loose.slots) {
    if (!loop || slot.access.strides[*loop] != 1 || slot.memory.of == Memory::Of::None) continue;
    count += elements(loose.nest, slot.access);
  }
  return count;
}

/// Whether what is computed for each element is. What becomes of folds is computed once for many.
bool is_wide(const Kernel& kernel) {
  const std::vector<int32_t> done = passes(kernel);
  const std::vector<bool> varies = varying(kernel);
  for (size_t i = 0; i < done.size(); ++i)
    if (const Expr& expr = kernel.exprs[i]; varies[i] || is_fold(expr) || done[i] == 0)
      if (size_of(expr.type) == 8 && expr.op != Op::Number) return true;
  return false;
}

/// Lanes fill four registers: a step waits for the one before it, and with fewer the processor waits too.
int32_t width_for(const Kernel& kernel, int64_t size) {
  constexpr int64_t registers = 4;
  int64_t width = registers * processor_register_bytes() / (is_wide(kernel) ? 8 : 4);
  // What lies apart is read element by element, which lengthens the code.
  const bool is_scattered = std::any_of(kernel.buffers.begin(), kernel.buffers.end(),
                                        [](const Buffer& buffer) { return buffer.lane == Step::Any; });
  if (is_scattered) width = std::min<int64_t>(width, 32);
  while (width > size && width > 8) width /= 2;
  return width <= size ? int32_t(width) : 1;
}

Step step_of(int64_t stride) { return stride == 0 ? Step::Zero : stride == 1 ? Step::One : Step::Any; }

bool keeps_lanes(const Loose& loose) {
  const auto kept = last_loop(loose.nest, false), reduced = last_loop(loose.nest, true);
  return !reduced || (kept && neighbours(loose, kept) > neighbours(loose, reduced));
}

/// The description of a kernel whose loops are in order.
Kernel describe(const Loose& loose, bool lane_kept) {
  Kernel kernel;
  const auto kept = last_loop(loose.nest, false);
  kernel.lane_kept = lane_kept;
  kernel.kept = kept ? int32_t(*kept) + 1 : 0;
  kernel.reduced = int32_t(loose.nest.size()) - kernel.kept;
  kernel.numbers = int32_t(loose.numbers.size());
  for (const Loose::Slot& slot : loose.slots) {
    const Dims& strides = slot.access.strides;
    kernel.buffers.push_back({slot.type, step_of(strides[size_t(kernel.lane())]),
                              std::any_of(strides.begin() + kernel.kept, strides.end(),
                                          [](int64_t stride) { return stride != 0; })});
  }
  kernel.exprs = loose.exprs;
  kernel.stores = loose.stores;
  kernel.width = width_for(kernel, loose.nest[size_t(kernel.lane())].size);
  return kernel;
}

/// Whether what goes to different places along the reduced loops is computed at each of them.
bool stores_where_it_computes(const Kernel& kernel) {
  const std::vector<bool> varies = varying(kernel);
  return std::all_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
    return varies[size_t(store.expr)] == kernel.buffers[size_t(store.buffer)].reduced_varies;
  });
}

/// Whether folds are all that reads the elements, so that pieces of them can be folded apart.
bool can_be_cut(const Kernel& kernel) {
  const std::vector<bool> varies = varying(kernel);
  const std::vector<int32_t> done = passes(kernel);
  for (size_t i = 0; i < varies.size(); ++i)
    if (done[i] > 1 || (varies[i] && done[i] > 0)) return false;
  return kernel.reduced > 0;
}

int64_t lane_tiles(const Kernel& kernel, const LoopNest& nest) {
  const int64_t kept = kept_count(nest);
  if (!kernel.lane_kept) return kept;
  const int64_t along = nest[size_t(kernel.lane())].size;
  return kept / along * divided_up(along, kernel.width);
}

/// Into how many pieces the first reduced loop is to be cut; 1: not.
int64_t wanted_pieces(const Kernel& kernel, const LoopNest& nest, int64_t threads) {
  const int64_t folded = reduced_count(nest), all = folded * kept_count(nest);
  const int64_t first = nest[size_t(kernel.kept)].size;
  if (all < least_for_threads || first < 2) return 1;
  const int64_t tiles = lane_tiles(kernel, nest), enough = units_for_thread * threads;
  // Rows are far apart: what goes through many of them for a few columns misses where pages lie at each step.
  constexpr int64_t rows_together = 256;
  int64_t pieces = tiles >= enough ? 1 : divided_up(enough, tiles);
  if (kernel.lane_kept) pieces = std::max(pieces, std::min(divided_up(folded, rows_together), 4 * enough));
  const int64_t least = kernel.lane_kept ? 16 : kernel.width * 64;
  return std::clamp<int64_t>(pieces, 1, std::max<int64_t>(first / least, 1));
}

/// Of so many lanes a unit is made, where lanes are kept: of all along the dimension, unless there would be
/// too few units then.
int64_t lanes_for_unit(const Kernel& kernel, const LoopNest& nest, int64_t threads) {
  if (!kernel.lane_kept) return 1;
  const int64_t along = nest[size_t(kernel.lane())].size, rows = kept_count(nest) / along;
  const int64_t pieces = divided_up(units_for_thread * threads, rows);
  const int64_t tiles = divided_up(divided_up(along, pieces), kernel.width);
  return std::min(lanes_of_unit, tiles * kernel.width);
}

Launch launch_of(Loose loose, Kernel kernel, int64_t cut_length, int64_t threads) {
  Launch launch;
  const LoopNest& nest = loose.nest;
  const int64_t along = nest[size_t(kernel.lane())].size, lanes = lanes_for_unit(kernel, nest, threads);
  launch.units = kept_count(nest);
  if (kernel.lane_kept) launch.units = launch.units / along * divided_up(along, lanes);
  launch.shape = {lanes, cut_length};
  for (const Loop& loop : nest) launch.shape.push_back(loop.size);
  for (const Loose::Slot& slot : loose.slots) {
    launch.shape.insert(launch.shape.end(), slot.access.strides.begin(), slot.access.strides.end());
    launch.buffers.push_back(slot.memory);
    launch.buffers.back().offset += slot.access.offset * size_of(slot.type);
  }
  launch.numbers = std::move(loose.numbers);
  launch.kernel = std::move(kernel);
  launch.nanoseconds = nanoseconds(launch);
  return launch;
}

/// The two kernels that one becomes whose folds are cut: the first folds pieces, the second what came of
/// them, and computes the rest.
class Cutting {
 public:
  Cutting(const Loose& whole, const Kernel& kernel, int64_t pieces, Fused& to)
      : whole_(whole), kept_(size_t(kernel.kept)), varies_(varying(kernel)), to_(to), first_(whole) {
    cut_length_ = whole.nest[kept_].size;
    const int64_t length = divided_up(cut_length_, pieces);
    pieces_ = divided_up(cut_length_, length);
    first_.nest[kept_].size = length;
    first_.nest.insert(first_.nest.begin(), {pieces_, false});
    for (Loose::Slot& slot : first_.slots)
      slot.access.strides.insert(slot.access.strides.begin(), slot.access.strides[kept_] * length);
    rest_.nest.assign(whole.nest.begin(), whole.nest.begin() + kernel.kept);
    rest_.nest.push_back({pieces_, true});
    rest_.numbers = whole.numbers;
  }

  void run(bool lane_kept, int64_t threads) {
    std::erase_if(first_.stores, [&](const Store& store) { return !varies_[size_t(store.expr)]; });
    for (const Store& store : whole_.stores)
      if (!varies_[size_t(store.expr)]) {
        const int32_t expr = moved(store.expr);
        rest_.stores.push_back({expr, add_slot(whole_.slots[size_t(store.buffer)])});
      }
    drop_unread(first_);
    to_.launches.push_back(launch_of(first_, describe(first_, lane_kept), cut_length_, threads));
    put_in_order(rest_);
    to_.launches.push_back(launch_of(rest_, describe(rest_, keeps_lanes(rest_)), 0, threads));
  }

 private:
  /// An expression that does not vary, among those of the rest.
  int32_t moved(int32_t place) {
    if (const auto known = moved_.find(place); known != moved_.end()) return known->second;
    Expr expr = whole_.exprs[size_t(place)];
    if (is_fold(expr)) {
      expr.a = load_partial(place);
    } else if (names_buffer(expr)) {
      expr.a = add_slot(whole_.slots[size_t(expr.a)]);
    } else {
      const int32_t count = operator_of(expr.op).operands;
      if (count > 0) expr.a = moved(expr.a);
      if (count > 1) expr.b = moved(expr.b);
      if (count > 2) expr.c = moved(expr.c);
    }
    return moved_[place] = add(expr);
  }

  /// What the pieces of a fold gave lies in memory of the group's own, that of one piece together.
  int32_t load_partial(int32_t fold) {
    const Type type = whole_.exprs[size_t(fold)].type;
    const Memory memory{Memory::Of::Scratch, int32_t(to_.scratch.size()), 0};
    const int64_t piece = kept_count(whole_.nest);
    to_.scratch.push_back(pieces_ * piece * size_of(type));
    Access written{Dims(first_.nest.size(), 0)}, read{Dims(rest_.nest.size(), 0)};
    written.strides[0] = read.strides[kept_] = piece;
    for (size_t loop = kept_, stride = 1; loop-- > 0; stride *= size_t(whole_.nest[loop].size))
      written.strides[loop + 1] = read.strides[loop] = int64_t(stride);
    first_.slots.push_back({memory, written, type, true});
    first_.stores.push_back({fold, int32_t(first_.slots.size()) - 1});
    rest_.slots.push_back({memory, read, type, false});
    return add({Op::Load, type, int32_t(rest_.slots.size()) - 1});
  }

  int32_t add_slot(Loose::Slot slot) {
    slot.access.strides.resize(kept_);
    slot.access.strides.push_back(0);
    rest_.slots.push_back(std::move(slot));
    return int32_t(rest_.slots.size()) - 1;
  }

  int32_t add(Expr expr) {
    rest_.exprs.push_back(expr);
    return int32_t(rest_.exprs.size()) - 1;
  }

  const Loose& whole_;
  const size_t kept_;
  const std::vector<bool> varies_;
  Fused& to_;
  Loose first_, rest_;
  int64_t pieces_ = 1, cut_length_ = 0;
  std::map<int32_t, int32_t> moved_;
};

Loose loose_from(const Graph& graph, Draft draft, Fused& to) {
  Loose loose;
  loose.nest = std::move(draft.nest);
  auto add = [&](const Element& element, Memory::Of of, std::vector<Value>& tensors) {
    if (!element.value) return loose.slots.push_back({{Memory::Of::None}, element.access, Type::Bool, false});
    auto known = std::find(tensors.begin(), tensors.end(), element.value);
    if (known == tensors.end()) known = tensors.insert(tensors.end(), element.value);
    const TensorMeta& meta = graph.meta(element.value);
    Access access = element.access;
    access.offset -= meta.offset;
    const Memory memory{of, int32_t(known - tensors.begin()), 0};
    loose.slots.push_back({memory, std::move(access), *type_of(meta.dtype), of == Memory::Of::Output});
  };
  for (const Element& element : draft.loads) add(element, Memory::Of::Input, to.inputs);
  for (const Draft::Stored& stored : draft.stores) {
    add(stored.to, Memory::Of::Output, to.outputs);
    loose.stores.push_back({stored.expr, int32_t(loose.slots.size()) - 1});
  }
  loose.exprs = draft.expressions.all();
  loose.numbers = draft.expressions.numbers();
  return loose;
}

/// Whether launches of a draft were added.
bool add_launches(const Graph& graph, Draft draft, int64_t threads, Fused& fused) {
  Loose loose = loose_from(graph, std::move(draft), fused);
  put_in_order(loose);
  const bool lane_kept = keeps_lanes(loose);
  Kernel kernel = describe(loose, lane_kept);
  if (!stores_where_it_computes(kernel)) return false;
  const int64_t pieces = kernel.reduced > 0 ? wanted_pieces(kernel, loose.nest, threads) : 1;
  if (pieces > 1 && can_be_cut(kernel))
    Cutting(loose, kernel, pieces, fused).run(lane_kept, threads);
  else if (pieces > 1 && lane_tiles(kernel, loose.nest) < 2 * threads)
    return false;
  else
    fused.launches.push_back(launch_of(std::move(loose), std::move(kernel), 0, threads));
  return true;
}

}  // namespace

std::optional<Fused> arrange(const Graph& graph, std::vector<Draft> parts, int64_t threads) {
  Fused fused;
  for (Draft& part : parts)
    if (!add_launches(graph, std::move(part), threads, fused)) return std::nullopt;
  return fused;
}

}  // namespace tandem::loops
