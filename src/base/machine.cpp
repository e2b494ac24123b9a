#include "base/machine.h"

#include <ATen/Version.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/code_hash.h"

namespace tandem {
namespace {

// ---- the processor

/// Lines of /proc/cpuinfo that name the model, on the architectures that write them; clock rates, microcode
/// and numbers of cores are no part of it.
constexpr std::string_view model_lines[] = {"vendor_id",   "cpu family",      "model",
                                            "model name",  "CPU implementer", "CPU architecture",
                                            "CPU variant", "CPU part"};

/// Flags of x86 that are instruction sets; the others tell of the kernel, of mitigations and of virtual
/// machines.
constexpr std::string_view instruction_sets[] = {"sse",  "ssse",    "avx",  "fma",    "f16c", "bmi",
                                                 "amx",  "popcnt",  "abm",  "movbe",  "aes",  "pclmul",
                                                 "vaes", "vpclmul", "gfni", "sha_ni", "adx"};

/// Takes what comes before the next `end` off the front.
std::string_view take_until(char end, std::string_view& text) {
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), taken.size() + 1));
  return taken;
}

std::string instruction_sets_among(std::string_view flags) {
  std::vector<std::string_view> found;
  while (!flags.empty()) {
    const std::string_view word = take_until(' ', flags);
    if (std::any_of(std::begin(instruction_sets), std::end(instruction_sets),
                    [&](std::string_view set) { return word.starts_with(set); }))
      found.push_back(word);
  }
  std::sort(found.begin(), found.end());
  std::string joined;
  for (std::string_view word : found) (joined += ' ') += word;
  return joined;
}

/// What the kernel says of the first processor, which speaks for all. It is asked for in small pieces, since
/// it takes its time for each processor.
std::string first_processor() {
  std::string text;
  const int file = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char piece[1024];
  while (text.find("\n\n") == text.npos) {
    const ssize_t size = read(file, piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(piece, size_t(size));
  }
  close(file);
  return text.substr(0, text.find("\n\n"));
}

std::string read_cpu() {
  const std::string processor = first_processor();
  std::string text;
  for (std::string_view lines = processor; !lines.empty();) {
    std::string_view value = take_until('\n', lines);
    std::string_view name = take_until(':', value);
    name = name.substr(0, name.find_last_not_of(" \t") + 1);
    auto add = [&](std::string_view as, std::string_view what) { ((((text += as) += ':') += what) += '\n'); };
    if (std::find(std::begin(model_lines), std::end(model_lines), name) != std::end(model_lines))
      add(name, value);
    if (name == "Features") add("features", value);
    if (name == "flags") add("features", instruction_sets_among(value));
  }
  return text;
}

// ---- build ids

constexpr uint32_t gnu_build_id = 3;  ///< NT_GNU_BUILD_ID

struct LoadedObject {
  uintptr_t address;  ///< which object is asked for: the one that this lies in
  std::string build_id;
};

bool contains(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address - begin < segment.p_memsz) return true;
  }
  return false;
}

std::string hex(const unsigned char* bytes, size_t count) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) text += {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
  return text;
}

std::string build_id_in(const char* notes, size_t size) {
  auto padded = [](size_t length) { return (length + 3) & ~size_t(3); };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof(header));
    const size_t whole = sizeof(header) + padded(header.n_namesz) + padded(header.n_descsz);
    if (whole > size) break;
    const char* name = notes + sizeof(header);
    if (header.n_type == gnu_build_id && header.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
      return hex(reinterpret_cast<const unsigned char*>(name + padded(header.n_namesz)), header.n_descsz);
    notes += whole;
    size -= whole;
  }
  return {};
}

int look_at(dl_phdr_info* object, size_t, void* wanted) {
  auto& asked = *static_cast<LoadedObject*>(wanted);
  if (!contains(*object, asked.address)) return 0;
  for (int i = 0; i < object->dlpi_phnum && asked.build_id.empty(); ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      asked.build_id =
          build_id_in(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

/// The build id of the program or library that holds this function; empty when it has none.
template <class Function>
std::string build_id_around(Function* function) {
  LoadedObject asked{reinterpret_cast<uintptr_t>(function), {}};
  dl_iterate_phdr(look_at, &asked);
  return asked.build_id;
}

std::string read_libtorch() {
  std::string text = std::string("version ") + TORCH_VERSION + '\n' + at::show_config();
  if (!text.ends_with('\n')) text += '\n';
  const std::string id = build_id_around(&at::show_config);
  return id.empty() ? text : text + "build id " + id + '\n';
}

}  // namespace

const std::string& cpu_identity() {
  static const auto& text = *new std::string(read_cpu());
  return text;
}

std::string gpu_identity(int index) {
  // libtorch's CUDA half has loaded the driver; asking it needs none of CUDA's headers.
  constexpr int major_capability = 75, minor_capability = 76;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!driver) return "unknown\n";
  auto find_device = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  auto read_name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  auto read_attribute = reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  int device = 0, major = 0, minor = 0;
  char name[256] = "unknown";
  if (find_device && read_name && read_attribute && find_device(&device, index) == 0) {
    read_name(name, sizeof(name), device);
    read_attribute(&major, major_capability, device);
    read_attribute(&minor, minor_capability, device);
  }
  dlclose(driver);
  return std::string(name) + ", compute capability " + std::to_string(major) + '.' + std::to_string(minor) +
         '\n';
}

const std::string& libtorch_identity() {
  static const auto& text = *new std::string(read_libtorch());
  return text;
}

const std::string& tandem_identity() {
  static const auto& text =
      *new std::string(std::string("version " TANDEM_VERSION "\ncode ") + code_hash + '\n');
  return text;
}

}  // namespace tandem
