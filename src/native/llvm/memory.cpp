#include "native/llvm/emitter.h"

namespace tandem::native {
namespace {

llvm::Function* helper(llvm::Module& module, llvm::Function& user, llvm::StringRef name,
                       llvm::FunctionType* signature) {
  auto* function = llvm::Function::Create(signature, llvm::Function::InternalLinkage, name, module);
  function->addFnAttrs(llvm::AttrBuilder(module.getContext(), user.getAttributes().getFnAttrs()));
  function->addFnAttr(llvm::Attribute::NoInline);
  return function;
}

std::string helper_name(const char* what, llvm::Type* type) {
  std::string name = what;
  llvm::raw_string_ostream(name) << *type;
  return name;
}

}  // namespace

llvm::Type* Emitter::element(loops::Type type) {
  switch (type) {
    case loops::Type::Bool:
      return builder_.getInt1Ty();
    case loops::Type::U8:
    case loops::Type::I8:
      return builder_.getInt8Ty();
    case loops::Type::I16:
      return builder_.getInt16Ty();
    case loops::Type::I32:
      return builder_.getInt32Ty();
    case loops::Type::I64:
      return builder_.getInt64Ty();
    case loops::Type::F32:
      return builder_.getFloatTy();
    case loops::Type::F64:
      return builder_.getDoubleTy();
  }
  return nullptr;
}

llvm::Type* Emitter::in_memory(loops::Type type) {
  return type == loops::Type::Bool ? builder_.getInt8Ty() : element(type);
}

llvm::Type* Emitter::wide(llvm::Type* element) {
  return width_ > 1 ? llvm::FixedVectorType::get(element, static_cast<unsigned>(width_)) : element;
}

llvm::Value* Emitter::smaller(llvm::Value* a, llvm::Value* b) {
  return builder_.CreateSelect(builder_.CreateICmpSLT(a, b), a, b);
}

llvm::Value* Emitter::shape_at(int32_t place) {
  llvm::Value* from =
      builder_.CreateConstGEP1_64(builder_.getInt64Ty(), shape_, static_cast<uint64_t>(place));
  llvm::LoadInst* number = builder_.CreateLoad(builder_.getInt64Ty(), from);
  number->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(builder_.getContext(), {}));
  return number;
}

llvm::Value* Emitter::size(int32_t dimension) { return shape_at(loops::shape_header + dimension); }

llvm::Value* Emitter::stride(int32_t buffer, int32_t dimension) {
  return shape_at(loops::shape_header + kernel_.rank() * (1 + buffer) + dimension);
}

llvm::Value* Emitter::base(int32_t buffer) {
  llvm::Value* from =
      builder_.CreateConstGEP1_64(builder_.getPtrTy(), buffers_, static_cast<uint64_t>(buffer));
  return builder_.CreateLoad(builder_.getPtrTy(), from);
}

llvm::Value* Emitter::moved(llvm::Value* pointer, loops::Type type, llvm::Value* elements) {
  return builder_.CreateGEP(in_memory(type), pointer, elements);
}

llvm::Value* Emitter::lane_address(int32_t buffer) {
  const loops::Buffer& of = kernel_.buffers[buffer];
  llvm::Value* pointer = place_.pointer[buffer];
  if (kernel_.lane() < 0 || of.lane == loops::Step::Zero) return pointer;
  llvm::Value* at = place_.index[kernel_.lane()];
  // A value that is the same along reduced lanes is read before there are any.
  if (!at) return pointer;
  if (of.lane == loops::Step::Any) at = builder_.CreateMul(at, stride(buffer, kernel_.lane()));
  return moved(pointer, of.type, at);
}

/// Whether lanes find different elements there, where the builder is.
bool Emitter::has_lanes(int32_t buffer) const {
  const bool lanes = place_.index.size() && kernel_.lane() >= 0 && place_.index[kernel_.lane()];
  return lanes && width_ > 1 && kernel_.buffers[buffer].lane != loops::Step::Zero;
}

llvm::Value* Emitter::load(int32_t buffer) {
  const loops::Buffer& of = kernel_.buffers[buffer];
  llvm::Value* address = lane_address(buffer);
  llvm::Type* type = in_memory(of.type);
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  llvm::Value* value;
  if (!has_lanes(buffer))
    value = builder_.CreateAlignedLoad(type, address, align);
  else if (of.lane == loops::Step::One)
    value = builder_.CreateAlignedLoad(wide(type), address, align);
  else
    value = gather(address, stride(buffer, kernel_.lane()), of.type);
  if (of.type != loops::Type::Bool) return value;
  return builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

void Emitter::store(int32_t buffer, llvm::Value* value, bool lanes_vary) {
  const loops::Buffer& to = kernel_.buffers[buffer];
  llvm::Type* type = in_memory(to.type);
  if (to.type == loops::Type::Bool)
    value = builder_.CreateZExt(value, value->getType()->isVectorTy() ? wide(type) : type);
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  if (width_ == 1) lanes_vary = lanes_vary && kernel_.lane() >= 0;
  llvm::Value* address = lanes_vary ? lane_address(buffer) : place_.pointer[buffer];
  if (width_ == 1 || !lanes_vary || to.lane == loops::Step::Zero) {
    if (value->getType()->isVectorTy()) value = builder_.CreateExtractElement(value, uint64_t{0});
    builder_.CreateAlignedStore(value, address, align);
  } else if (to.lane == loops::Step::One) {
    builder_.CreateAlignedStore(widened(value), address, align);
  } else {
    scatter(address, stride(buffer, kernel_.lane()), widened(value));
  }
}

llvm::Value* Emitter::load_number(const loops::Expr& expr) {
  const bool real = expr.type == loops::Type::F32 || expr.type == loops::Type::F64;
  llvm::Type* type = real ? builder_.getDoubleTy() : static_cast<llvm::Type*>(builder_.getInt64Ty());
  llvm::Value* from = builder_.CreateConstGEP1_64(type, numbers_, static_cast<uint64_t>(expr.a));
  llvm::Value* number = builder_.CreateLoad(type, from);
  if (expr.type == loops::Type::Bool) return builder_.CreateICmpNE(number, int64(0));
  if (expr.type == loops::Type::F32) return builder_.CreateFPTrunc(number, element(expr.type));
  return real ? number : builder_.CreateTrunc(number, element(expr.type));
}

// Element by element, out of line: a kernel has many such loads, and each is long.

llvm::Value* Emitter::gather(llvm::Value* pointer, llvm::Value* stride, loops::Type type) {
  llvm::Type *one = in_memory(type), *all = wide(one);
  const std::string name = helper_name("gather_", all);
  llvm::Function* function = module_.getFunction(name);
  if (!function) {
    auto* signature = llvm::FunctionType::get(all, {builder_.getPtrTy(), builder_.getInt64Ty()}, false);
    function = helper(module_, *builder_.GetInsertBlock()->getParent(), name, signature);
    Builder inside(llvm::BasicBlock::Create(module_.getContext(), "", function));
    llvm::Value *from = function->getArg(0), *result = llvm::PoisonValue::get(all);
    for (int32_t i = 0; i < width_; ++i) {
      if (i > 0) from = inside.CreateGEP(one, from, function->getArg(1));
      result = inside.CreateInsertElement(result, inside.CreateLoad(one, from), static_cast<uint64_t>(i));
    }
    inside.CreateRet(result);
  }
  return builder_.CreateCall(function, {pointer, stride});
}

void Emitter::scatter(llvm::Value* pointer, llvm::Value* stride, llvm::Value* value) {
  llvm::Type *all = value->getType(), *one = all->getScalarType();
  const std::string name = helper_name("scatter_", all);
  llvm::Function* function = module_.getFunction(name);
  if (!function) {
    auto* signature = llvm::FunctionType::get(builder_.getVoidTy(),
                                              {builder_.getPtrTy(), builder_.getInt64Ty(), all}, false);
    function = helper(module_, *builder_.GetInsertBlock()->getParent(), name, signature);
    Builder inside(llvm::BasicBlock::Create(module_.getContext(), "", function));
    llvm::Value* to = function->getArg(0);
    for (int32_t i = 0; i < width_; ++i) {
      if (i > 0) to = inside.CreateGEP(one, to, function->getArg(1));
      inside.CreateStore(inside.CreateExtractElement(function->getArg(2), static_cast<uint64_t>(i)), to);
    }
    inside.CreateRetVoid();
  }
  builder_.CreateCall(function, {pointer, stride, value});
}

}  // namespace tandem::native
