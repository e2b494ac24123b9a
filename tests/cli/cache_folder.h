/// The program `tandem` with a cache of the test's own.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include "cli/program.h"
#include "support/files_below.h"

/// A cache in the test's folder, which nobody else uses.
struct CliCache : Cli {
  fs::path directory;

  void SetUp() override {
    Cli::SetUp();
    directory = folder / "cache";
    setenv("TANDEM_CACHE", "", 1);
    setenv("TANDEM_CACHE_DIR", directory.c_str(), 1);
    torch::jit::Module script("Script");
    script.register_parameter("weight", at::ones({3}).requires_grad_(), /*is_buffer=*/false);
    script.define("def forward(self, x):\n  return (x * self.weight).tanh()\n");
    script.save(folder / "script.pt");
  }
  void TearDown() override {
    setenv("TANDEM_CACHE", "off", 1);
    unsetenv("TANDEM_CACHE_DIR");
    Cli::TearDown();
  }

  /// Compiles the script for inputs of some size; the key.
  std::string compile(const std::string& input = "2x3:f32") {
    EXPECT_EQ(run({"explain", folder / "script.pt", "--input", input, "--json"}), 0) << errors();
    return object()["key"];
  }
  std::vector<Json> lines() const {
    std::vector<Json> found;
    std::istringstream text(output());
    for (std::string line; std::getline(text, line);) found.push_back(Json::parse(line));
    return found;
  }
  /// A file of the cache, by its kind and name.
  fs::path file(const std::string& kind, const std::string& name) const {
    return directory / kind / name.substr(0, 2) / name;
  }
  static void damage(const fs::path& path) {
    std::string bytes = read_file(path);
    bytes[bytes.size() / 2] ^= 1;
    std::ofstream(path, std::ios::binary) << bytes;
  }
};
