/// What the library asks of the plugin that holds LLVM.
#pragma once

#include "loops/kernel.h"

#include <cstddef>

namespace tandem::native {

/// Changes with anything below and with loops::Kernel: a plugin of another number is not used.
constexpr int32_t plugin_version = 2;

/// What a compilation hands over, as it was asked for.
enum class Part : int32_t { Object, Ir, Assembly, Error };
using Receive = void (*)(void* receiver, Part part, const char* bytes, size_t size);

struct Request {
  const loops::Kernel* kernel = nullptr;
  const char* function = nullptr;  ///< where there is no kernel: one that kernels call, by its name
  const char* features;  ///< of the processor, as LLVM names them, with commas between; code may use them all
  bool texts = false;    ///< the IR and the assembly are wanted, not the object
  void* receiver = nullptr;
  Receive receive = nullptr;
};

constexpr const char* plugin_file = "libtandem_llvm.so";

/// The one name that the plugin exports gives this; it may be called on several threads.
struct Plugin {
  int32_t version;
  void (*compile)(const Request& request);
};
using PluginEntry = const Plugin* (*)();
constexpr const char* plugin_entry = "tandem_llvm_plugin";

/// The name of a kernel's code in its object.
constexpr const char* kernel_symbol = "tandem_kernel";

}  // namespace tandem::native
