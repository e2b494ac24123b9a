#include "native/image.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "tandem/error.h"

namespace tandem::native {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error("The object that LLVM made of a kernel " + what + ": report it, and use another backend.");
}

void demand(bool holds, const char* what) {
  if (!holds) refuse(what);
}

/// One object on its way to an image. Places and sizes that it names are compared with what is there before
/// they are used.
class Linker {
 public:
  Linker(std::span<const uint8_t> object, std::string_view kernel) : object_(object), kernel_(kernel) {}

  Image run() {
    read_header();
    for (size_t i = 0; i < sections_.size(); ++i) place(i);
    for (const Elf64_Shdr& section : sections_)
      if (section.sh_type == SHT_RELA && is_placed(section.sh_info)) relocate(section);
    find_kernel();
    return std::move(image_);
  }

 private:
  struct Placed {
    std::vector<uint8_t>* part = nullptr;  ///< none for what is not needed
    uint64_t offset = 0;
  };

  template <class T>
  T read(uint64_t offset) const {
    T value;
    demand(offset <= object_.size() && sizeof(T) <= object_.size() - offset, "ends within a record");
    std::memcpy(&value, object_.data() + offset, sizeof(T));
    return value;
  }

  void read_header() {
    const auto header = read<Elf64_Ehdr>(0);
    demand(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
               header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_REL,
           "is no relocatable ELF object");
    demand(header.e_machine == EM_X86_64 && header.e_shentsize == sizeof(Elf64_Shdr), "is not of x86-64");
    for (uint64_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    placed_.resize(sections_.size());
  }

  std::span<const uint8_t> bytes_of(const Elf64_Shdr& section) const {
    demand(section.sh_offset <= object_.size() && section.sh_size <= object_.size() - section.sh_offset,
           "has a section beyond its end");
    return object_.subspan(section.sh_offset, section.sh_size);
  }

  /// Sections that are to be in memory, one behind the other: code in the code, others in the constants.
  void place(size_t number) {
    const Elf64_Shdr& section = sections_[number];
    if (!(section.sh_flags & SHF_ALLOC) || section.sh_size == 0 || section.sh_type == SHT_X86_64_UNWIND)
      return;
    demand(section.sh_type == SHT_PROGBITS && !(section.sh_flags & (SHF_WRITE | SHF_TLS)), "has variables");
    demand(std::has_single_bit(section.sh_addralign) && section.sh_addralign <= page, "is not aligned");
    const std::span<const uint8_t> bytes = bytes_of(section);
    std::vector<uint8_t>& part = section.sh_flags & SHF_EXECINSTR ? image_.code : image_.constants;
    part.resize(padded_to(part.size(), section.sh_addralign));
    placed_[number] = {&part, part.size()};
    part.insert(part.end(), bytes.begin(), bytes.end());
  }

  bool is_placed(uint64_t section) const { return section < placed_.size() && placed_[section].part; }

  uint64_t address_of(const Placed& placed) const {
    return placed.offset + (placed.part == &image_.code ? 0 : padded_to(image_.code.size(), page));
  }

  Elf64_Sym symbol(uint64_t table, uint64_t number) const {
    demand(table < sections_.size() && sections_[table].sh_type == SHT_SYMTAB, "has no symbols");
    demand(number < sections_[table].sh_size / sizeof(Elf64_Sym), "names a symbol that is not there");
    return read<Elf64_Sym>(sections_[table].sh_offset + number * sizeof(Elf64_Sym));
  }

  uint64_t address_of(const Elf64_Sym& symbol) const {
    demand(is_placed(symbol.st_shndx), "calls what is not in it");
    demand(symbol.st_value <= sections_[symbol.st_shndx].sh_size, "has a symbol beyond its section");
    return address_of(placed_[symbol.st_shndx]) + symbol.st_value;
  }

  void relocate(const Elf64_Shdr& section) {
    for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Rela); ++i)
      relocate(section, read<Elf64_Rela>(section.sh_offset + i * sizeof(Elf64_Rela)));
  }

  /// All that lies in one image is near: a call by way of a table is a plain call.
  void relocate(const Elf64_Shdr& section, const Elf64_Rela& place) {
    const auto kind = ELF64_R_TYPE(place.r_info);
    if (kind != R_X86_64_PC32 && kind != R_X86_64_PLT32)
      refuse("has a relocation of kind " + std::to_string(kind));
    const uint64_t size = sections_[section.sh_info].sh_size;
    demand(size >= sizeof(int32_t) && place.r_offset <= size - sizeof(int32_t),
           "is relocated beyond its end");
    const Placed& placed = placed_[section.sh_info];
    const uint64_t target = address_of(symbol(section.sh_link, ELF64_R_SYM(place.r_info)));
    const auto distance = static_cast<int64_t>(target + static_cast<uint64_t>(place.r_addend) -
                                               address_of(placed) - place.r_offset);
    const auto narrow = static_cast<int32_t>(distance);
    demand(narrow == distance, "has a relocation that reaches too far");
    std::memcpy(placed.part->data() + placed.offset + place.r_offset, &narrow, sizeof(narrow));
  }

  std::string_view name_at(const Elf64_Shdr& names, uint64_t offset) const {
    const std::span<const uint8_t> bytes = bytes_of(names);
    demand(offset < bytes.size(), "has a name beyond its names");
    const auto end = std::find(bytes.begin() + static_cast<int64_t>(offset), bytes.end(), 0);
    return {reinterpret_cast<const char*>(bytes.data()) + offset,
            static_cast<size_t>(end - bytes.begin()) - offset};
  }

  void find_kernel() {
    for (size_t table = 0; table < sections_.size(); ++table) {
      if (sections_[table].sh_type != SHT_SYMTAB) continue;
      demand(sections_[table].sh_link < sections_.size(), "has no names");
      for (uint64_t i = 0; i < sections_[table].sh_size / sizeof(Elf64_Sym); ++i) {
        const Elf64_Sym found = symbol(table, i);
        if (name_at(sections_[sections_[table].sh_link], found.st_name) != kernel_) continue;
        image_.entry = address_of(found);
        demand(image_.entry < image_.code.size(), "has its kernel elsewhere than in its code");
        return;
      }
    }
    refuse("has no kernel");
  }

  std::span<const uint8_t> object_;
  std::string_view kernel_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Placed> placed_;
  Image image_;
};

}  // namespace

Image link(std::span<const uint8_t> object, std::string_view kernel) { return Linker(object, kernel).run(); }

}  // namespace tandem::native
