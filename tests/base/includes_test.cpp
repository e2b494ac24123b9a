// Which folders of the sources use which: what docs/architecture.md says of it is what the files do.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The folders in the documented order: the line with the arrows.
std::vector<std::string> documented_order(const std::string& document) {
  std::istringstream lines(document);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("    base -> ")) continue;
    static const std::regex word("[a-z]+");
    return {std::sregex_token_iterator(line.begin(), line.end(), word), std::sregex_token_iterator()};
  }
  return {};
}

/// Includes of a folder that comes later, as "file includes other".
std::vector<std::string> edges_against(const std::vector<std::string>& order, const fs::path& sources) {
  static const std::regex include("#include \"([a-z]+)/([^\"]+)\"");
  auto place = [&](const std::string& folder) { return std::find(order.begin(), order.end(), folder) - order.begin(); };
  std::vector<std::string> found;
  for (const auto& file : fs::recursive_directory_iterator(sources)) {
    if (!file.is_regular_file() || file.path().parent_path() == sources) continue;
    const std::string folder = fs::relative(file.path(), sources).begin()->string(), text = text_of(file.path());
    if (place(folder) == std::ssize(order)) found.push_back(folder + " is no folder of the documented order");
    for (auto at = std::sregex_iterator(text.begin(), text.end(), include); at != std::sregex_iterator(); ++at)
      if (fs::exists(sources / std::string((*at)[1])) && place((*at)[1]) > place(folder)) found.push_back(file.path().string() + " includes " + std::string((*at)[1]) + "/" + std::string((*at)[2]));
  }
  return found;
}

const fs::path root = TANDEM_SOURCE_DIR;

TEST(Includes, GoAlongTheDocumentedOrder) {
  const auto order = documented_order(text_of(root / "docs/architecture.md"));
  ASSERT_GT(order.size(), 10u) << "the line with the arrows is missing";
  for (const std::string& edge : edges_against(order, root / "src")) ADD_FAILURE() << edge;
}

TEST(Includes, AnEdgeThatIsTurnedRoundIsSeen) {
  auto order = documented_order(text_of(root / "docs/architecture.md"));
  std::swap(*std::find(order.begin(), order.end(), "aot"), *std::find(order.begin(), order.end(), "trace"));
  EXPECT_FALSE(edges_against(order, root / "src").empty());
}

TEST(Sources, AreFilesOfAtMost300Lines) {
  for (const auto& file : fs::recursive_directory_iterator(root / "src"))
    if (file.is_regular_file()) {
      const std::string text = text_of(file.path());
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 300) << file.path();
    }
}

}  // namespace
