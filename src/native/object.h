/// A relocatable ELF object as LLVM writes it. Places and sizes that it names are compared with what is there
/// before they are used.
#pragma once

#include <elf.h>

#include <functional>
#include <optional>
#include <string>

#include "native/image.h"

namespace tandem::native {

/// All of it throws Error where it holds anything else than code, constants and places of the one in the
/// other.
class Object {
 public:
  explicit Object(std::span<const uint8_t> bytes);

  /// Adds what is to be in memory: code to the code, the rest to the constants.
  void place_in(Image& image);
  /// Names of what it calls and does not hold.
  std::vector<std::string> missing() const;
  /// Where in the image something of it lies that has this name.
  uint64_t address_of(const Image& image, const std::string& name) const;
  /// Writes into the image how far apart things are; `elsewhere` tells where what is missing lies.
  using Find = std::function<uint64_t(const std::string& name)>;
  void relocate(Image& image, const Find& elsewhere) const;

 private:
  struct Placed {
    bool is_there = false, is_code = false;
    uint64_t offset = 0;
  };

  template <class T>
  T read(uint64_t offset) const;
  std::span<const uint8_t> bytes_of(const Elf64_Shdr& section) const;
  void place(size_t number, Image& image);
  bool is_placed(uint64_t section) const { return section < placed_.size() && placed_[section].is_there; }
  uint64_t address_of(const Image& image, const Placed& placed) const;
  uint64_t address_of(const Image& image, const Elf64_Sym& symbol) const;
  Elf64_Sym symbol(uint64_t table, uint64_t number) const;
  std::string name_of(uint64_t table, const Elf64_Sym& symbol) const;
  void relocate(const Elf64_Shdr& section, const Elf64_Rela& place, Image& image,
                const Find& elsewhere) const;
  template <class Visit>
  void for_symbols(Visit visit) const;

  std::span<const uint8_t> bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Placed> placed_;
};

}  // namespace tandem::native
