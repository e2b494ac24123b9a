/// The program `tandem`, run as a user runs it.
#pragma once

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

inline std::string program() {
#ifdef TANDEM_PROGRAM
  return TANDEM_PROGRAM;
#else
  const char* chosen = std::getenv("TANDEM_PROGRAM");
  if (!chosen) throw std::runtime_error("set TANDEM_PROGRAM to the program under test");
  return chosen;
#endif
}

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder for one test.
struct Cli : testing::Test {
  fs::path folder;

  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tandem-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  /// A run of the program; output and errors are in files of the folder.
  pid_t start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program());
    const std::string out = folder / "stdout", err = folder / "stderr";
    const pid_t child = fork();
    if (child != 0) return child;
    std::vector<char*> pointers;
    for (std::string& a : arguments) pointers.push_back(a.data());
    pointers.push_back(nullptr);
    dup2(open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDERR_FILENO);
    execv(pointers[0], pointers.data());
    _exit(127);
  }

  static int finish(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int run(std::vector<std::string> arguments) { return finish(start(std::move(arguments))); }
  std::string output() const { return read_file(folder / "stdout"); }
  std::string errors() const { return read_file(folder / "stderr"); }

  /// The output, which must be one JSON object on one line.
  Json object() const {
    const std::string text = output();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    return Json::parse(text);
  }
};
