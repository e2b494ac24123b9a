#include "native/machine_code.h"

#include "native/compiler.h"
#include "native/llvm/plugin.h"
#include "native/named_code.h"

namespace tandem::native {
namespace {

class CodeInMemory final : public MachineCode {
 public:
  CodeInMemory(const loops::Kernel& kernel, std::vector<uint8_t> bytes, const Artifact& artifact)
      : executable_(artifact.code, artifact.constants),
        named_(executable_.code(), artifact.code.size(), name_of(kernel)),
        entry_(artifact.entry),
        bytes_(std::move(bytes)) {}

  loops::Code entry() const override {
    return reinterpret_cast<loops::Code>(reinterpret_cast<uintptr_t>(executable_.code() + entry_));
  }
  const std::vector<uint8_t>& bytes() const override { return bytes_; }

 private:
  Executable executable_;
  NamedCode named_;
  uint64_t entry_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

CodePointer compiled_for(const loops::Kernel& kernel, const std::string& text, const std::string& features) {
  const std::vector<uint8_t> object = compile_object(kernel, features);
  const Image image =
      link(object, kernel_symbol, [&](const std::string& name) { return function_object(name, features); });
  std::vector<uint8_t> bytes = to_bytes(image, text, features);
  const Artifact artifact = *read_artifact(bytes, text);
  return in_memory(kernel, std::move(bytes), artifact);
}

CodePointer in_memory(const loops::Kernel& kernel, std::vector<uint8_t> bytes, const Artifact& artifact) {
  return std::make_shared<CodeInMemory>(kernel, std::move(bytes), artifact);
}

}  // namespace tandem::native
