#include "native/llvm/math.h"

#include <stdexcept>

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

const MathFunction* find_function(llvm::StringRef name) {
  for (const MathFunction& function : math_functions)
    if (name.split('_').first == function.name) return &function;
  return nullptr;
}

std::string name_for(const MathFunction& function, llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  std::string name = function.name;
  name += type->getScalarType()->isDoubleTy() ? "_f64_" : "_f32_";
  return name + std::to_string(vector ? vector->getNumElements() : 1);
}

llvm::Type* type_in_name(llvm::LLVMContext& context, llvm::StringRef name) {
  const auto [type, lanes] = name.split('_').second.split('_');
  llvm::Type* element = type == "f64" ? llvm::Type::getDoubleTy(context) : llvm::Type::getFloatTy(context);
  unsigned count = 1;
  if (!find_function(name) || lanes.getAsInteger(10, count))
    throw std::runtime_error("there is no function " + name.str());
  return count > 1 ? llvm::FixedVectorType::get(element, count) : element;
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

void give_target(llvm::Function& function, const Target& target) {
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr("target-cpu", "x86-64");
  function.addFnAttr("target-features", target.features);
  function.addFnAttr("tune-cpu", target.tuned_for);
  function.addFnAttr("prefer-vector-width", std::to_string(target.register_bits));
}

llvm::Function& declare_math(llvm::Module& module, llvm::StringRef name, const Target& target) {
  if (llvm::Function* known = module.getFunction(name)) return *known;
  llvm::Type* type = type_in_name(module.getContext(), name);
  auto* signature = llvm::FunctionType::get(type, {type}, false);
  auto* function = llvm::Function::Create(signature, llvm::Function::ExternalLinkage, name, module);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function->setDSOLocal(true);
  give_target(*function, target);
  return *function;
}

bool is_math(const llvm::Function& function) {
  return function.isDeclaration() && !function.isIntrinsic() && find_function(function.getName());
}

void define_math(llvm::Function& declared) {
  Builder builder(llvm::BasicBlock::Create(declared.getContext(), "", &declared));
  const Lanes lanes(builder, declared.getReturnType());
  builder.CreateRet(find_function(declared.getName())->emit(builder, lanes, declared.getArg(0)));
}

bool is_math(loops::Op op) { return find_function(op) != nullptr; }

llvm::Value* call_math(Builder& builder, loops::Op op, llvm::Value* x, const Target& target) {
  const MathFunction& math = *find_function(op);
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  const auto function_for = [&](llvm::Type* type) {
    return &declare_math(module, name_for(math, type), target);
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!vector) return builder.CreateCall(function_for(x->getType()), {x});
  const int32_t lanes = static_cast<int32_t>(vector->getNumElements());
  const int32_t most =
      registers_passed * target.register_bits / static_cast<int32_t>(vector->getScalarSizeInBits());
  if (lanes <= most) return builder.CreateCall(function_for(x->getType()), {x});
  Values parts;
  for (int32_t first = 0; first < lanes; first += most) {
    llvm::Value* part = slice(builder, x, first, most);
    parts.push_back(builder.CreateCall(function_for(part->getType()), {part}));
  }
  return joined(builder, parts);
}

}  // namespace tandem::native
