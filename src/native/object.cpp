#include "native/object.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tandem/error.h"

namespace tandem::native {
namespace {

[[noreturn]] void refuse_object(const std::string& what) {
  throw Error("The object that LLVM made of a kernel " + what + ": report it, and use another backend.");
}

void demand(bool holds, const char* what) {
  if (!holds) refuse_object(what);
}

}  // namespace

template <class T>
T Object::read(uint64_t offset) const {
  T value;
  demand(offset <= bytes_.size() && sizeof(T) <= bytes_.size() - offset, "ends within a record");
  std::memcpy(&value, bytes_.data() + offset, sizeof(T));
  return value;
}

Object::Object(std::span<const uint8_t> bytes) : bytes_(bytes) {
  const auto header = read<Elf64_Ehdr>(0);
  demand(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
             header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_REL,
         "is no relocatable ELF object");
  demand(header.e_machine == EM_X86_64 && header.e_shentsize == sizeof(Elf64_Shdr), "is not of x86-64");
  for (uint64_t i = 0; i < header.e_shnum; ++i)
    sections_.push_back(read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
  placed_.resize(sections_.size());
}

std::span<const uint8_t> Object::bytes_of(const Elf64_Shdr& section) const {
  demand(section.sh_offset <= bytes_.size() && section.sh_size <= bytes_.size() - section.sh_offset,
         "has a section beyond its end");
  return bytes_.subspan(section.sh_offset, section.sh_size);
}

void Object::place_in(Image& image) {
  for (size_t i = 0; i < sections_.size(); ++i) place(i, image);
}

void Object::place(size_t number, Image& image) {
  const Elf64_Shdr& section = sections_[number];
  if (!(section.sh_flags & SHF_ALLOC) || section.sh_size == 0 || section.sh_type == SHT_X86_64_UNWIND) return;
  demand(section.sh_type == SHT_PROGBITS && !(section.sh_flags & (SHF_WRITE | SHF_TLS)), "has variables");
  demand(std::has_single_bit(section.sh_addralign) && section.sh_addralign <= page, "is not aligned");
  const std::span<const uint8_t> bytes = bytes_of(section);
  const bool is_code = section.sh_flags & SHF_EXECINSTR;
  std::vector<uint8_t>& part = is_code ? image.code : image.constants;
  part.resize(padded_to(part.size(), section.sh_addralign));
  placed_[number] = {true, is_code, part.size()};
  part.insert(part.end(), bytes.begin(), bytes.end());
}

uint64_t Object::address_of(const Image& image, const Placed& placed) const {
  return placed.offset + (placed.is_code ? 0 : padded_to(image.code.size(), page));
}

uint64_t Object::address_of(const Image& image, const Elf64_Sym& symbol) const {
  demand(is_placed(symbol.st_shndx), "names what is not in it");
  demand(symbol.st_value <= sections_[symbol.st_shndx].sh_size, "has a symbol beyond its section");
  return address_of(image, placed_[symbol.st_shndx]) + symbol.st_value;
}

Elf64_Sym Object::symbol(uint64_t table, uint64_t number) const {
  demand(table < sections_.size() && sections_[table].sh_type == SHT_SYMTAB, "has no symbols");
  demand(number < sections_[table].sh_size / sizeof(Elf64_Sym), "names a symbol that is not there");
  return read<Elf64_Sym>(sections_[table].sh_offset + number * sizeof(Elf64_Sym));
}

std::string Object::name_of(uint64_t table, const Elf64_Sym& symbol) const {
  demand(sections_[table].sh_link < sections_.size(), "has no names");
  const std::span<const uint8_t> names = bytes_of(sections_[sections_[table].sh_link]);
  demand(symbol.st_name < names.size(), "has a name beyond its names");
  const auto begin = names.begin() + symbol.st_name;
  return {begin, std::find(begin, names.end(), 0)};
}

template <class Visit>
void Object::for_symbols(Visit visit) const {
  for (size_t table = 0; table < sections_.size(); ++table)
    if (sections_[table].sh_type == SHT_SYMTAB)
      for (uint64_t i = 1; i < sections_[table].sh_size / sizeof(Elf64_Sym); ++i)
        visit(table, symbol(table, i));
}

std::vector<std::string> Object::missing() const {
  std::vector<std::string> names;
  for_symbols([&](uint64_t table, const Elf64_Sym& symbol) {
    if (symbol.st_shndx == SHN_UNDEF) names.push_back(name_of(table, symbol));
  });
  return names;
}

uint64_t Object::address_of(const Image& image, const std::string& name) const {
  std::optional<uint64_t> address;
  for_symbols([&](uint64_t table, const Elf64_Sym& symbol) {
    if (symbol.st_shndx != SHN_UNDEF && name_of(table, symbol) == name) address = address_of(image, symbol);
  });
  if (!address || *address >= image.code.size()) refuse_object("has no code named " + name);
  return *address;
}

void Object::relocate(Image& image, const Find& elsewhere) const {
  for (const Elf64_Shdr& section : sections_)
    if (section.sh_type == SHT_RELA && is_placed(section.sh_info))
      for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Rela); ++i)
        relocate(section, read<Elf64_Rela>(section.sh_offset + i * sizeof(Elf64_Rela)), image, elsewhere);
}

/// All that lies in one image is near: a call by way of a table is a plain call.
void Object::relocate(const Elf64_Shdr& section, const Elf64_Rela& place, Image& image,
                      const Find& elsewhere) const {
  const auto kind = ELF64_R_TYPE(place.r_info);
  if (kind != R_X86_64_PC32 && kind != R_X86_64_PLT32)
    refuse_object("has a relocation of kind " + std::to_string(kind));
  const uint64_t size = sections_[section.sh_info].sh_size;
  demand(size >= sizeof(int32_t) && place.r_offset <= size - sizeof(int32_t), "is relocated beyond its end");
  const Placed& placed = placed_[section.sh_info];
  const Elf64_Sym named = symbol(section.sh_link, ELF64_R_SYM(place.r_info));
  const uint64_t target =
      named.st_shndx == SHN_UNDEF ? elsewhere(name_of(section.sh_link, named)) : address_of(image, named);
  const auto distance = static_cast<int64_t>(target + static_cast<uint64_t>(place.r_addend) -
                                             address_of(image, placed) - place.r_offset);
  const auto narrow = static_cast<int32_t>(distance);
  demand(narrow == distance, "has a relocation that reaches too far");
  std::vector<uint8_t>& part = placed.is_code ? image.code : image.constants;
  std::memcpy(part.data() + placed.offset + place.r_offset, &narrow, sizeof(narrow));
}

}  // namespace tandem::native
