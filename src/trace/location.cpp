#include "trace/location.h"

#include <torch/csrc/jit/runtime/interpreter.h>

#include <array>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#ifdef TANDEM_HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>
#endif

namespace tandem {
namespace {

constexpr std::array foreign_libraries = {"libtorch", "libc10",  "libtandem", "libstdc++",
                                          "libc.so",  "libc-",   "libgcc_s",  "libpthread",
                                          "ld-linux", "libgomp", "libasan",   "libubsan"};
constexpr std::array foreign_folders = {"/include/torch/", "/include/ATen/",   "/include/c10/",
                                        "/torch/include/", "/include/tandem/", "/include/c++/",
                                        "/usr/include/",   "/usr/lib/gcc/"};

bool is_foreign_library(std::string_view path) {
  std::string_view file = path.substr(path.rfind('/') + 1);
  return std::any_of(foreign_libraries.begin(), foreign_libraries.end(),
                     [&](std::string_view name) { return file.starts_with(name); });
}

/// Programs of ours hold the library's code themselves.
[[maybe_unused]] bool is_own_source(std::string_view path) {
  static const auto& folder =
      *new std::string(std::filesystem::path(__FILE__).parent_path().parent_path() / "");
  return path.starts_with(folder);
}

[[maybe_unused]] bool is_foreign_source(std::string_view path) {
  return is_own_source(path) ||
         std::any_of(foreign_folders.begin(), foreign_folders.end(),
                     [&](std::string_view folder) { return path.find(folder) != path.npos; });
}

std::string script_location() {
  for (const torch::jit::StackEntry& entry : torch::jit::currentCallstack()) {
    torch::jit::SourceRange range = entry.range;
    if (range.source())
      if (auto original = range.source()->findSourceRangeThatGenerated(range)) range = *original;
    if (auto place = range.file_line_col())
      return std::get<0>(*place) + ":" + std::to_string(std::get<1>(*place));
  }
  return {};
}

#ifdef TANDEM_HAVE_LIBDW

/// The debug information of this process, read once and kept.
class DebugInfo {
 public:
  DebugInfo() : session_(dwfl_begin(&callbacks)) { refresh(); }

  /// The innermost place of the user's at this address, functions that were inlined there included; empty
  /// when it is all foreign.
  std::string find(uintptr_t address) {
    Dwfl_Module* module = module_at(address);
    if (!module || is_foreign_library(path_of(module))) return {};
    if (std::string place = line_of(module, address); !place.empty()) return place;
    if (std::string place = enclosing_call(module, address); !place.empty()) return place;
    return preceding_line(module, address);
  }

  /// The symbol at this address, local ones too; empty where it is foreign.
  std::string symbol(uintptr_t address) {
    Dwfl_Module* module = module_at(address);
    const char* name =
        module && !is_foreign_library(path_of(module)) ? dwfl_module_addrname(module, address) : nullptr;
    return name ? name : "";
  }

 private:
  void refresh() {
    if (!session_) return;
    dwfl_report_begin_add(session_);
    dwfl_linux_proc_report(session_, getpid());
    dwfl_report_end(session_, nullptr, nullptr);
  }
  Dwfl_Module* module_at(uintptr_t address) {
    if (!session_) return nullptr;
    if (auto* module = dwfl_addrmodule(session_, address)) return module;
    refresh();  // a library may have been loaded since
    return dwfl_addrmodule(session_, address);
  }
  static std::string path_of(Dwfl_Module* module) {
    const char* file = nullptr;
    const char* name = dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &file, nullptr);
    return file ? file : name ? name : "";
  }
  static std::string place(const char* folder, const char* file, int line) {
    if (!file) return {};
    std::filesystem::path path = file;
    if (path.is_relative() && folder) path = folder / path;
    std::string text = path.lexically_normal().string();
    return is_foreign_source(text) ? "" : text + ":" + std::to_string(line);
  }
  static std::string line_of(Dwfl_Module* module, uintptr_t address) {
    Dwfl_Line* line = dwfl_module_getsrc(module, address);
    if (!line) return {};
    int number = 0;
    const char* file = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
    return place(dwfl_line_comp_dir(line), file, number);
  }
  // The line table knows only the innermost inlined function, often one of libtorch's headers: walk out
  // through the calls that were inlined.
  static std::string enclosing_call(Dwfl_Module* module, uintptr_t address) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = dwfl_module_addrdie(module, address, &bias);
    if (!unit) return {};
    Dwarf_Die* scopes = nullptr;
    int count = dwarf_getscopes(unit, address - bias, &scopes);
    std::unique_ptr<Dwarf_Die, decltype(&std::free)> owner(scopes, &std::free);
    std::string found;
    for (int i = 0; i < count && found.empty(); ++i)
      if (dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine) found = call_site(unit, &scopes[i]);
    return found;
  }
  static std::string call_site(Dwarf_Die* unit, Dwarf_Die* inlined) {
    Dwarf_Attribute attribute;
    Dwarf_Word file = 0, line = 0;
    Dwarf_Files* files = nullptr;
    size_t file_count = 0;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0) return {};
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0) return {};
    if (dwarf_getsrcfiles(unit, &files, &file_count) != 0 || file >= file_count) return {};
    const char* folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    return place(folder, dwarf_filesrc(files, file, nullptr, nullptr), static_cast<int>(line));
  }

  // Minimal debug information does not tell what was inlined: the line of the user's nearest before the call,
  // in the same function, is where its arguments were made.
  static std::string preceding_line(Dwfl_Module* module, uintptr_t address) {
    GElf_Off offset = 0;
    GElf_Sym symbol;
    if (!dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr)) return {};
    for (uintptr_t start = address - offset; address >= start;) {
      Dwfl_Line* line = dwfl_module_getsrc(module, address);
      Dwarf_Addr line_start = 0;
      if (!line || !dwfl_lineinfo(line, &line_start, nullptr, nullptr, nullptr, nullptr)) return {};
      if (std::string place = line_of(module, address); !place.empty()) return place;
      address = line_start - 1;
    }
    return {};
  }

  static inline char* no_debug_path = nullptr;
  static constexpr Dwfl_Callbacks callbacks = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo,
                                               nullptr, &no_debug_path};
  Dwfl* session_;
};

/// Never destroyed: threads may still ask while the process ends.
DebugInfo& debug_info() {
  static auto* info = new DebugInfo;
  return *info;
}

std::string source_line(uintptr_t address) { return debug_info().find(address); }
std::string symbol(uintptr_t address) { return debug_info().symbol(address); }

#else

std::string source_line(uintptr_t) { return {}; }
std::string symbol(uintptr_t address) {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(address), &info) && info.dli_sname &&
                 !is_foreign_library(info.dli_fname ? info.dli_fname : "")
             ? info.dli_sname
             : "";
}

#endif

std::string function_name(uintptr_t address) {
  std::string name = symbol(address);
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  if (status == 0) name = plain.get();
  constexpr std::array foreign_names = {
      "std::", "at::", "c10::", "torch::", "tandem::", "_start", "void std::"};
  const bool foreign = std::any_of(foreign_names.begin(), foreign_names.end(),
                                   [&](const char* prefix) { return name.starts_with(prefix); });
  return foreign ? "" : name;
}

/// What `look_up` found for this address; a program comes by the same ones at every trace.
template <std::string (*look_up)(uintptr_t)>
std::string remembered(uintptr_t address) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<uintptr_t, std::string>;
  std::lock_guard lock(mutex);
  const auto [found, is_new] = known->try_emplace(address);
  if (is_new) found->second = look_up(address);
  return found->second;
}

}  // namespace

std::function<std::string()>& host_location() {
  static auto* source = new std::function<std::string()>;
  return *source;
}

std::string user_location() {
  if (host_location())
    if (std::string place = host_location()(); !place.empty()) return place;
  if (std::string place = script_location(); !place.empty()) return place;
  std::array<void*, 256> frames;
  int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (auto look_up : {remembered<source_line>, remembered<function_name>})
    for (int i = 0; i < count; ++i)
      if (std::string place = look_up(reinterpret_cast<uintptr_t>(frames[size_t(i)]) - 1); !place.empty())
        return place;
  return {};
}

}  // namespace tandem
