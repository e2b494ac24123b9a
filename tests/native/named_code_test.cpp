// What debuggers and profilers see of kernels.
#include "loops/kernels.h"
#include "native/launches.h"
#include "native/named_code.h"
#include "support/new_process.h"

#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

extern "C" {
struct jit_descriptor {
  uint32_t version, action;
  tandem::native::NamedCode::Entry *relevant, *first;
};
extern jit_descriptor __jit_debug_descriptor;
}

namespace tandem::native {
namespace {

TEST(NamedCode, IsCalledAfterWhatItComputes) {
  EXPECT_EQ(name_of(loops::softmax()), "tandem_reduce_max_sub_exp_reduce_sum_div");
  EXPECT_EQ(name_of(loops::pointwise()), "tandem_mul_add_max");
  loops::Kernel copy = loops::pointwise();
  copy.exprs.resize(1);
  EXPECT_EQ(name_of(copy), "tandem_copy");
  loops::Kernel many = loops::pointwise();
  for (auto op = loops::Op::Neg; op < loops::Op::Eq; op = static_cast<loops::Op>(static_cast<int>(op) + 1))
    many.exprs.push_back({op, loops::Type::F32, 0, 0});
  EXPECT_LT(name_of(many).size(), 61u);
}

TEST(NamedCode, IsInTheListThatGdbReads) {
  const auto* before = __jit_debug_descriptor.first;
  const uint8_t code[] = {0xC3};
  {
    const NamedCode first(code, 1, "tandem_first"), second(code, 1, "tandem_second");
    const auto* entry = __jit_debug_descriptor.first;
    ASSERT_NE(entry, before);
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(entry->object);
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(entry->object + header->e_shoff);
    EXPECT_EQ(sections[1].sh_addr, reinterpret_cast<uintptr_t>(code));
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(entry->object + sections[3].sh_offset);
    EXPECT_STREQ(reinterpret_cast<const char*>(entry->object + sections[2].sh_offset) + symbols[1].st_name,
                 "tandem_second");
    EXPECT_EQ(entry->next->next, before);
  }
  EXPECT_EQ(__jit_debug_descriptor.first, before);
}

void expect_perf_map() {
  setenv("TANDEM_PERF_MAP", "1", 1);
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  const uint8_t code[] = {0xC3};
  const NamedCode named(code, 1, "tandem_named");
  std::ifstream map(path);
  uintptr_t address = 0;
  size_t size = 0;
  std::string name;
  map >> std::hex >> address >> size >> name;
  EXPECT_EQ(address, reinterpret_cast<uintptr_t>(code));
  EXPECT_EQ(size, 1u);
  EXPECT_EQ(name, "tandem_named");
  std::remove(path.c_str());
}

TEST(NamedCode, IsInPerfsMapWhereThatIsAskedFor) { IN_A_NEW_PROCESS(expect_perf_map()); }

}  // namespace
}  // namespace tandem::native
