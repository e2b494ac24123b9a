#include "native/llvm/math.h"

namespace tandem::native {
namespace {

struct MathFunction {
  loops::Op op;
  const char* name;
  llvm::Value* (*emit)(Builder& builder, const Lanes& lanes, llvm::Value* x);
};

constexpr MathFunction math_functions[] = {
    {loops::Op::Exp, "exp", emit_exp},
    {loops::Op::Expm1, "expm1", emit_expm1},
    {loops::Op::Log, "log", emit_log},
    {loops::Op::Log1p, "log1p", emit_log1p},
    {loops::Op::Tanh, "tanh", emit_tanh},
    {loops::Op::Erf, "erf", emit_erf},
    {loops::Op::Sigmoid, "sigmoid", emit_sigmoid},
    {loops::Op::Sin, "sin", emit_sin},
    {loops::Op::Cos, "cos", emit_cos},
};

const MathFunction* find_function(loops::Op op) {
  for (const MathFunction& function : math_functions)
    if (function.op == op) return &function;
  return nullptr;
}

std::string name_for(const MathFunction& function, llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  std::string name = function.name;
  name += type->getScalarType()->isDoubleTy() ? "_f64_" : "_f32_";
  return name + std::to_string(vector ? vector->getNumElements() : 1);
}

llvm::Function* function_in(llvm::Function& user, const MathFunction& math, llvm::Type* type) {
  llvm::Module& module = *user.getParent();
  const std::string name = name_for(math, type);
  if (llvm::Function* known = module.getFunction(name)) return known;
  auto* signature = llvm::FunctionType::get(type, {type}, false);
  auto* function = llvm::Function::Create(signature, llvm::Function::InternalLinkage, name, module);
  function->setAttributes(
      llvm::AttributeList::get(module.getContext(), llvm::AttributeList::FunctionIndex,
                               llvm::AttrBuilder(module.getContext(), user.getAttributes().getFnAttrs())));
  function->addFnAttr(llvm::Attribute::NoInline);
  Builder builder(llvm::BasicBlock::Create(module.getContext(), "", function));
  const Lanes lanes(builder, type);
  builder.CreateRet(math.emit(builder, lanes, function->getArg(0)));
  return function;
}

/// So many registers take arguments, and give results, without a detour through memory.
constexpr int32_t registers_passed = 4;

llvm::Value* slice(Builder& builder, llvm::Value* x, int32_t first, int32_t count) {
  llvm::SmallVector<int, 32> places;
  for (int32_t i = 0; i < count; ++i) places.push_back(first + i);
  return builder.CreateShuffleVector(x, places);
}

llvm::Value* joined(Builder& builder, Values parts) {
  while (parts.size() > 1) {
    Values halves;
    for (size_t i = 0; i < parts.size(); i += 2) {
      const auto count = llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
      llvm::SmallVector<int, 32> places;
      for (unsigned place = 0; place < 2 * count; ++place) places.push_back(static_cast<int>(place));
      halves.push_back(builder.CreateShuffleVector(parts[i], parts[i + 1], places));
    }
    parts = halves;
  }
  return parts[0];
}

}  // namespace

bool is_math(loops::Op op) { return find_function(op) != nullptr; }

llvm::Value* call_math(Builder& builder, loops::Op op, llvm::Value* x, int32_t register_bits) {
  const MathFunction& math = *find_function(op);
  llvm::Function& user = *builder.GetInsertBlock()->getParent();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!vector) return builder.CreateCall(function_in(user, math, x->getType()), {x});
  const int32_t lanes = static_cast<int32_t>(vector->getNumElements());
  const int32_t most = registers_passed * register_bits / static_cast<int32_t>(vector->getScalarSizeInBits());
  if (lanes <= most) return builder.CreateCall(function_in(user, math, x->getType()), {x});
  Values parts;
  for (int32_t first = 0; first < lanes; first += most) {
    llvm::Value* part = slice(builder, x, first, most);
    parts.push_back(builder.CreateCall(function_in(user, math, part->getType()), {part}));
  }
  return joined(builder, parts);
}

}  // namespace tandem::native
