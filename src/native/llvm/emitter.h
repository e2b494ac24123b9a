/// One kernel's loops and expressions as IR.
#pragma once

#include "loops/kernel.h"
#include "native/llvm/math.h"

#include <llvm/IR/Module.h>

#include <string>
#include <vector>

namespace tandem::native {

class Emitter {
 public:
  Emitter(const loops::Kernel& kernel, const Target& target, llvm::Module& module);
  void emit();

 private:
  /// Where the loops are.
  struct Place {
    std::vector<llvm::Value*> index;    ///< in each dimension, where lane 0 is in the lanes' own
    std::vector<llvm::Value*> pointer;  ///< into each buffer: without the place along the lanes
  };
  /// What is computed while the reduced dimensions are gone through once.
  struct Pass {
    std::vector<int32_t> exprs, folds, stores;
    std::vector<int32_t> buffers;  ///< that differ from step to step
    /// of each expression: the buffer that an earlier pass stored it to, which is read; -1: it is computed
    std::vector<int32_t> stored_in;
    std::vector<int32_t> sums;  ///< places in `folds` of sums that rounding makes wrong
  };

  // analysis.cpp
  void analyse();
  std::vector<bool> needed() const;
  std::vector<bool> lane_varying() const;
  Pass pass_of(int32_t number) const;
  bool folds_columns() const;
  void add_needed(int32_t expr, const Pass& pass, std::vector<bool>& wanted) const;

  // units.cpp: the loops over units and over tiles of lanes
  llvm::Function* declare();
  void emit_unit(llvm::Value* unit);
  void find_unit(llvm::Value* unit);
  void emit_tiles();
  llvm::Value* emit_wide_tiles(llvm::Value* begin, llvm::Value* end);
  void emit_tile();
  void evaluate_before_tiles();
  void evaluate_unreduced(int32_t passes);
  void store_unreduced();

  // nest.cpp: the loops over reduced dimensions
  void emit_pass(int32_t number);
  void finish_sum(llvm::Value*& sum, llvm::Value* error);
  Values emit_nest(const Pass& pass, int32_t dimension, const Values& folded);
  Values emit_steps(const Pass& pass, int32_t dimension, const Range& range, const Values& folded);
  Values emit_step(const Pass& pass, llvm::Value* new_from, const Values& folded);
  Values without_old_lanes(const Pass& pass, llvm::Value* old_lanes, const Values& operands);
  llvm::Value* reduced_size(int32_t dimension);
  llvm::Value* fold_lanes(const loops::Expr& fold, llvm::Value* lanes);

  // memory.cpp
  llvm::Value* size(int32_t dimension);
  llvm::Value* stride(int32_t buffer, int32_t dimension);
  llvm::Value* shape_at(int32_t place);
  llvm::Value* moved(llvm::Value* pointer, loops::Type type, llvm::Value* elements);
  bool has_lanes(int32_t buffer) const;
  llvm::Value* base(int32_t buffer);
  llvm::Value* lane_address(int32_t buffer);
  llvm::Value* load(int32_t buffer);
  void store(int32_t buffer, llvm::Value* value, bool lanes_vary);
  llvm::Value* load_number(const loops::Expr& expr);
  llvm::Value* gather(llvm::Value* pointer, llvm::Value* stride, loops::Type type);
  void scatter(llvm::Value* pointer, llvm::Value* stride, llvm::Value* value);

  // values.cpp
  void evaluate(int32_t expr);
  llvm::Value* value_of(const loops::Expr& expr);
  llvm::Value* index_of(int32_t dimension);
  llvm::Value* offset_of(int32_t buffer, llvm::Type* type);
  llvm::Value* lane_numbers(llvm::Type* type);
  llvm::Value* unary(const loops::Expr& expr, llvm::Value* a);
  llvm::Value* binary(loops::Op op, loops::Type type, llvm::Value* a, llvm::Value* b);
  llvm::Value* extreme(loops::Type type, llvm::Value* a, llvm::Value* b, bool largest);
  llvm::Value* compare(loops::Op op, loops::Type type, llvm::Value* a, llvm::Value* b);
  llvm::Value* cast(loops::Type from, loops::Type to, llvm::Value* a);
  llvm::Value* widened(llvm::Value* value);
  llvm::Value* identity(const loops::Expr& fold);

  llvm::Type* element(loops::Type type);
  llvm::Type* in_memory(loops::Type type);
  llvm::Type* wide(llvm::Type* element);
  llvm::Value* int64(int64_t value) { return builder_.getInt64(static_cast<uint64_t>(value)); }
  llvm::Value* smaller(llvm::Value* a, llvm::Value* b);

  const loops::Kernel& kernel_;
  const Target& target_;
  llvm::Module& module_;
  Builder builder_;
  int32_t width_;  ///< of the tile that is emitted
  std::vector<bool> varying_, needed_, lane_varying_;
  std::vector<int32_t> passes_;
  std::vector<int32_t> load_reduced_;  ///< buffers' dimensions along which a pass moves them

  llvm::Value *buffers_ = nullptr, *shape_ = nullptr, *numbers_ = nullptr;
  Place place_;
  std::vector<llvm::Value*> values_;  ///< of expressions, where the builder is
};

}  // namespace tandem::native
