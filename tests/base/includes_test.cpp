// Which folders of the sources use which, and how long files and lines are: what docs/architecture.md says of
// it is what the files do.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The folders in the documented order: the lines with the arrows.
std::vector<std::string> documented_order(const std::string& document) {
  const size_t begin = document.find("\n    base -> ");
  if (begin == std::string::npos) return {};
  const std::string arrows = document.substr(begin, document.find("\n\n", begin) - begin);
  static const std::regex word("[a-z]+");
  return {std::sregex_token_iterator(arrows.begin(), arrows.end(), word), std::sregex_token_iterator()};
}

/// Includes of a folder that comes later, as "file includes other".
std::vector<std::string> edges_against(const std::vector<std::string>& order, const fs::path& sources) {
  static const std::regex include("#include \"([a-z]+)/([^\"]+)\"");
  auto place = [&](const std::string& folder) {
    return std::find(order.begin(), order.end(), folder) - order.begin();
  };
  std::vector<std::string> found;
  for (const auto& file : fs::recursive_directory_iterator(sources)) {
    if (!file.is_regular_file() || file.path().parent_path() == sources) continue;
    const std::string folder = fs::relative(file.path(), sources).begin()->string(),
                      text = text_of(file.path());
    if (place(folder) == std::ssize(order)) found.push_back(folder + " is no folder of the documented order");
    for (auto at = std::sregex_iterator(text.begin(), text.end(), include); at != std::sregex_iterator();
         ++at)
      if (fs::exists(sources / std::string((*at)[1])) && place((*at)[1]) > place(folder))
        found.push_back(file.path().string() + " includes " + std::string((*at)[1]) + "/" +
                        std::string((*at)[2]));
  }
  return found;
}

const fs::path root = TANDEM_SOURCE_DIR;

TEST(Includes, GoAlongTheDocumentedOrder) {
  const auto order = documented_order(text_of(root / "docs/architecture.md"));
  ASSERT_GT(order.size(), 10u) << "the lines with the arrows are missing";
  for (const std::string& edge : edges_against(order, root / "src")) ADD_FAILURE() << edge;
}

TEST(Includes, AnEdgeThatIsTurnedRoundIsSeen) {
  auto order = documented_order(text_of(root / "docs/architecture.md"));
  std::swap(*std::find(order.begin(), order.end(), "aot"), *std::find(order.begin(), order.end(), "trace"));
  EXPECT_FALSE(edges_against(order, root / "src").empty());
}

TEST(Sources, AreFilesOfAtMost300Lines) {
  for (const char* folder : {"src", "include", "python/extension", "fuzz", "bench"})
    for (const auto& file : fs::recursive_directory_iterator(root / folder))
      if (const std::string kind = file.path().extension(); kind == ".cpp" || kind == ".h" || kind == ".py") {
        const std::string text = text_of(file.path());
        EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 300) << file.path();
      }
}

/// What people write, in folders and in the root itself; not what builds leave there.
std::vector<fs::path> written_files() {
  static const std::set<std::string> kinds = {".cpp",   ".h",  ".py", ".pyi",  ".md",   ".txt",
                                              ".cmake", ".in", ".sh", ".supp", ".toml", ".json"};
  std::vector<fs::path> found = {root / "run", root / "test"};
  auto look_at = [&](const fs::path& path) {
    if (kinds.contains(path.extension())) found.push_back(path);
  };
  for (const auto& file : fs::directory_iterator(root)) look_at(file);
  for (const char* folder :
       {"src", "include", "tests", "python", "fuzz", "bench", "cmake", "scripts", "docs"})
    for (const auto& file : fs::recursive_directory_iterator(root / folder)) look_at(file);
  return found;
}

/// The numbers of lines with more than 110 characters, which are not bytes; a row of a table is one line.
std::vector<size_t> long_lines(const std::string& text) {
  std::istringstream lines(text);
  std::vector<size_t> found;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    auto begins_character = [](char byte) { return (byte & 0xC0) != 0x80; };
    if (!line.starts_with('|') && std::count_if(line.begin(), line.end(), begins_character) > 110)
      found.push_back(number);
  }
  return found;
}

TEST(Sources, HaveLinesOfAtMost110Characters) {
  for (const fs::path& file : written_files())
    for (size_t line : long_lines(text_of(file))) ADD_FAILURE() << file.string() << ":" << line;
}

TEST(Sources, ALongLineIsSeen) {
  std::string accents;
  for (int i = 0; i < 110; ++i) accents += "\u00e9";
  EXPECT_EQ(long_lines("short\n" + accents + "\n" + accents + "e\n|" + accents), std::vector<size_t>{3});
}

}  // namespace
