#include "native/llvm/plugin.h"

#include "native/llvm/emitter.h"
#include "native/llvm/math.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <memory>
#include <mutex>
#include <stdexcept>

namespace tandem::native {
namespace {

constexpr const char* triple = "x86_64-unknown-linux-gnu";

void initialise_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    // What LLVM cannot compile would end the process.
    llvm::install_fatal_error_handler(
        [](void*, const char* reason, bool) { throw std::runtime_error(reason); });
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

Target target_with(const char* features) {
  llvm::SmallVector<llvm::StringRef, 16> names;
  llvm::StringRef(features).split(names, ',', -1, false);
  const bool has_512_bits = llvm::is_contained(names, "avx512vl");
  return {"+" + llvm::join(names, ",+"), llvm::sys::getHostCPUName().str(), has_512_bits ? 512 : 256};
}

/// Making one takes long, compared with a kernel.
llvm::TargetMachine& target_machine() {
  thread_local std::unique_ptr<llvm::TargetMachine> machine = [] {
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
    llvm::TargetOptions options;
    return std::unique_ptr<llvm::TargetMachine>(
        target->createTargetMachine(triple, "x86-64", "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                    llvm::CodeGenOptLevel::Default));
  }();
  return *machine;
}

void hand_over(const Request& request, Part part, llvm::StringRef bytes) {
  request.receive(request.receiver, part, bytes.data(), bytes.size());
}

void generate(const Request& request, llvm::Module& module, Part part) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto kind =
      part == Part::Object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  target_machine().addPassesToEmitFile(passes, stream, nullptr, kind, true);
  passes.run(module);
  hand_over(request, part, llvm::StringRef(bytes.data(), bytes.size()));
}

void emit_module(const Request& request, llvm::Module& module) {
  module.setTargetTriple(triple);
  module.setDataLayout(target_machine().createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  const Target target = target_with(request.features);
  if (request.kernel)
    Emitter(*request.kernel, target, module).emit();
  else
    define_math(declare_math(module, request.function, target));
}

void give_texts(const Request& request) {
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  emit_module(request, module);
  for (llvm::Function& function : module)
    if (is_math(function)) define_math(function);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  hand_over(request, Part::Ir, text);
  std::string wrong;
  llvm::raw_string_ostream complaints(wrong);
  if (llvm::verifyModule(module, &complaints)) return hand_over(request, Part::Error, wrong);
  generate(request, module, Part::Assembly);
}

void compile_or_throw(const Request& request) {
  if (request.texts) return give_texts(request);
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  emit_module(request, module);
  generate(request, module, Part::Object);
}

void compile(const Request& request) {
  initialise_once();
  try {
    compile_or_throw(request);
  } catch (const std::exception& error) {
    hand_over(request, Part::Error, error.what());
  }
}

}  // namespace
}  // namespace tandem::native

extern "C" [[gnu::visibility("default")]] const tandem::native::Plugin* tandem_llvm_plugin() {
  static const tandem::native::Plugin plugin = {tandem::native::plugin_version, tandem::native::compile};
  return &plugin;
}
