#include "native/named_code.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "loops/operators.h"

// gdb stops in the function, and reads the variable then; it looks for both by their names.
extern "C" {

struct jit_descriptor {
  uint32_t version;
  uint32_t action;
  tandem::native::NamedCode::Entry* relevant;
  tandem::native::NamedCode::Entry* first;
};

[[gnu::used]] jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
[[gnu::noinline, gnu::used]] void __jit_debug_register_code() { asm volatile("" ::: "memory"); }
}

namespace tandem::native {
namespace {

enum Action : uint32_t { Register = 1, Unregister = 2 };

std::mutex& list_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

void tell(NamedCode::Entry& entry, Action action) {
  __jit_debug_descriptor.relevant = &entry;
  __jit_debug_descriptor.action = action;
  __jit_debug_register_code();
}

/// An object without contents: one symbol that names the code where it lies.
struct SymbolObject {
  enum Section : uint16_t { None, Text, Names, Symbols, Count };

  Elf64_Ehdr header{};
  Elf64_Shdr sections[Count] = {};
  Elf64_Sym symbols[2] = {};
  char names[96] = "\0.text\0.strtab\0.symtab";  ///< of sections, then of the code
};

constexpr uint32_t text_name = 1, names_name = 7, symbols_name = 15, code_name = 23;

std::vector<uint8_t> symbol_object(const uint8_t* code, size_t size, const std::string& name) {
  SymbolObject object;
  std::snprintf(object.names + code_name, sizeof(object.names) - code_name, "%s", name.c_str());
  std::memcpy(object.header.e_ident, ELFMAG, SELFMAG);
  object.header.e_ident[EI_CLASS] = ELFCLASS64;
  object.header.e_ident[EI_DATA] = ELFDATA2LSB;
  object.header.e_ident[EI_VERSION] = object.header.e_version = EV_CURRENT;
  object.header.e_type = ET_REL;
  object.header.e_machine = EM_X86_64;
  object.header.e_ehsize = sizeof(Elf64_Ehdr);
  object.header.e_shoff = offsetof(SymbolObject, sections);
  object.header.e_shentsize = sizeof(Elf64_Shdr);
  object.header.e_shnum = SymbolObject::Count;
  object.header.e_shstrndx = SymbolObject::Names;
  object.sections[SymbolObject::Text] = {.sh_name = text_name,
                                         .sh_type = SHT_NOBITS,
                                         .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                         .sh_addr = reinterpret_cast<uintptr_t>(code),
                                         .sh_size = size,
                                         .sh_addralign = 1};
  object.sections[SymbolObject::Names] = {.sh_name = names_name,
                                          .sh_type = SHT_STRTAB,
                                          .sh_offset = offsetof(SymbolObject, names),
                                          .sh_size = sizeof(object.names),
                                          .sh_addralign = 1};
  object.sections[SymbolObject::Symbols] = {.sh_name = symbols_name,
                                            .sh_type = SHT_SYMTAB,
                                            .sh_offset = offsetof(SymbolObject, symbols),
                                            .sh_size = sizeof(object.symbols),
                                            .sh_link = SymbolObject::Names,
                                            .sh_info = 1,
                                            .sh_addralign = alignof(Elf64_Sym),
                                            .sh_entsize = sizeof(Elf64_Sym)};
  object.symbols[1] = {.st_name = code_name,
                       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                       .st_shndx = SymbolObject::Text,
                       .st_size = size};
  const auto* bytes = reinterpret_cast<const uint8_t*>(&object);
  return {bytes, bytes + sizeof(object)};
}

/// Not written through a link that somebody else put there.
int open_perf_map() {
  if (!std::getenv("TANDEM_PERF_MAP")) return -1;
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
}

void add_to_perf_map(const uint8_t* code, size_t size, const std::string& name) {
  static const int file = open_perf_map();
  if (file >= 0)
    dprintf(file, "%llx %zx %s\n", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(code)), size,
            name.c_str());
}

}  // namespace

std::string name_of(const loops::Kernel& kernel) {
  constexpr size_t longest = 60;
  std::set<loops::Op> named;
  std::string name = "tandem";
  for (const loops::Expr& expr : kernel.exprs) {
    const loops::Operator& facts = loops::operator_of(expr.op);
    const bool tells = facts.kind == loops::Kind::Arithmetic || facts.kind == loops::Kind::Fold;
    if (tells && name.size() + std::strlen(facts.name) < longest && named.insert(expr.op).second)
      (name += '_') += facts.name;
  }
  return named.empty() ? name + "_copy" : name;
}

NamedCode::NamedCode(const uint8_t* code, size_t size, const std::string& name)
    : object_(symbol_object(code, size, name)), entry_{nullptr, nullptr, object_.data(), object_.size()} {
  const std::lock_guard lock(list_mutex());
  entry_.next = __jit_debug_descriptor.first;
  if (entry_.next) entry_.next->previous = &entry_;
  __jit_debug_descriptor.first = &entry_;
  tell(entry_, Register);
  add_to_perf_map(code, size, name);
}

NamedCode::~NamedCode() {
  const std::lock_guard lock(list_mutex());
  if (entry_.next) entry_.next->previous = entry_.previous;
  (entry_.previous ? entry_.previous->next : __jit_debug_descriptor.first) = entry_.next;
  tell(entry_, Unregister);
}

}  // namespace tandem::native
