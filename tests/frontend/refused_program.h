/// Programs that the C++ compiler must refuse, and what it says.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include "base/process.h"

namespace tandem::test {

/// The command with which the tests of this folder are compiled, up to its output.
inline std::string compile_command() {
  std::ifstream file(TANDEM_BINARY_DIR "/compile_commands.json");
  if (!file)
    throw std::runtime_error(
        "there is no compile_commands.json beside the build; CMAKE_EXPORT_COMPILE_COMMANDS makes it");
  for (const auto& entry : nlohmann::json::parse(file)) {
    if (!entry["file"].get<std::string>().ends_with("frontend/wrapper_test.cpp")) continue;
    const std::string command = entry["command"];
    return "cd '" + entry["directory"].get<std::string>() + "' && " + command.substr(0, command.find(" -o "));
  }
  throw std::runtime_error("compile_commands.json does not list wrapper_test.cpp");
}

/// What the compiler says to a program that includes <tandem/wrapper.h>; empty when it takes it.
inline std::string refusal_of(const std::string& program) {
  static const std::string command = compile_command();
  const auto source =
      std::filesystem::temp_directory_path() / ("tandem_refused_" + std::to_string(getpid()) + ".cpp");
  std::ofstream(source) << "#include <tandem/wrapper.h>\n" << program << "\n";
  const Finished compiler =
      run_program({"sh", "-c", command + " -fsyntax-only '" + source.string() + "' 2>&1"});
  std::filesystem::remove(source);
  return compiler.status != 0 ? compiler.output : "";
}

}  // namespace tandem::test
