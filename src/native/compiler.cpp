#include "native/compiler.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "native/llvm/plugin.h"
#include "base/processor.h"
#include "tandem/error.h"

namespace tandem::native {
namespace {

namespace fs = std::filesystem;

struct Compiler {
  const Plugin* plugin = nullptr;
  std::string complaint;  ///< why there is none
};

/// The folder of the library or program that this code is in.
fs::path own_folder() {
  Dl_info info;
  link_map* object = nullptr;
  const void* here = reinterpret_cast<const void*>(&own_folder);
  const bool found = dladdr1(here, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0;
  // The program itself has no name there.
  const bool in_library = found && object && object->l_name[0];
  std::error_code ignored;
  return fs::canonical(in_library ? object->l_name : "/proc/self/exe", ignored).parent_path();
}

/// Where it lies as seen from the library, and from programs where they are built and installed.
constexpr const char* plugin_folders[] = {".", "..", "../lib", "../lib64", "../lib/x86_64-linux-gnu"};

Compiler open_compiler() {
  if (!processor_suffices()) return {nullptr, "this processor lacks AVX2 and FMA"};
  const fs::path own = own_folder();
  fs::path file;
  for (const char* folder : plugin_folders)
    if (file = own / folder / plugin_file; fs::exists(file)) break;
  if (!fs::exists(file))
    return {nullptr, std::string("there is no ") + plugin_file + " in " + own.string() +
                         " (it is not built where there is no LLVM 19)"};
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return {nullptr, dlerror()};
  auto entry = reinterpret_cast<PluginEntry>(dlsym(library, plugin_entry));
  if (!entry || entry()->version != plugin_version)
    return {nullptr, file.string() + " is of another version of Tandem"};
  return {entry(), {}};
}

const Compiler& compiler() {
  static const Compiler& opened = *new Compiler(open_compiler());
  return opened;
}

struct Received {
  std::string object, ir, assembly, error;
};

void receive(void* receiver, Part part, const char* bytes, size_t size) {
  auto& received = *static_cast<Received*>(receiver);
  switch (part) {
    case Part::Object:
      received.object.assign(bytes, size);
      break;
    case Part::Ir:
      received.ir.assign(bytes, size);
      break;
    case Part::Assembly:
      received.assembly.assign(bytes, size);
      break;
    case Part::Error:
      received.error.assign(bytes, size);
      break;
  }
}

Received compile_with(Request request) {
  if (!compiler().plugin)
    throw Error("Machine code cannot be made: " + compiler().complaint + ". Use another backend.");
  Received received;
  request.receiver = &received;
  request.receive = receive;
  compiler().plugin->compile(request);
  if (!received.error.empty())
    throw Error("LLVM cannot compile a kernel: " + received.error +
                (request.kernel ? "\n" + to_string(*request.kernel) : std::string()));
  return received;
}

}  // namespace

bool has_compiler() { return compiler().plugin != nullptr; }

std::vector<uint8_t> compile_object(const loops::Kernel& kernel, const std::string& features) {
  const Received received = compile_with({.kernel = &kernel, .features = features.c_str()});
  return {received.object.begin(), received.object.end()};
}

std::span<const uint8_t> function_object(const std::string& name, const std::string& features) {
  static auto& mutex = *new std::mutex;
  static auto& objects = *new std::map<std::pair<std::string, std::string>, std::string>;
  const std::lock_guard lock(mutex);
  std::string& object = objects[{name, features}];
  if (object.empty()) object = compile_with({.function = name.c_str(), .features = features.c_str()}).object;
  return {reinterpret_cast<const uint8_t*>(object.data()), object.size()};
}

CompilerTexts compiler_texts(const loops::Kernel& kernel) {
  Received received =
      compile_with({.kernel = &kernel, .features = processor_features().c_str(), .texts = true});
  return {std::move(received.ir), std::move(received.assembly)};
}

}  // namespace tandem::native
