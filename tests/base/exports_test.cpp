// What the library exports: what the public headers declare, what is marked for the Python extension, and
// nothing else of ours.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

namespace {

namespace fs = std::filesystem;

const fs::path root = TANDEM_SOURCE_DIR;

using Words = std::set<std::string>;

void add_words(std::string text, Words& to) {
  static const std::regex comment("//[^\n]*"), word("[A-Za-z_][A-Za-z_0-9]*");
  text = std::regex_replace(text, comment, "");
  to.insert(std::sregex_token_iterator(text.begin(), text.end(), word), std::sregex_token_iterator());
}

/// Names that occur in public headers, and on lines that are marked.
Words words_that_may_be_exported() {
  Words found;
  for (const auto& file : fs::recursive_directory_iterator(root / "include"))
    if (file.is_regular_file()) {
      std::ostringstream text;
      text << std::ifstream(file.path()).rdbuf();
      add_words(text.str(), found);
    }
  for (const auto& file : fs::recursive_directory_iterator(root / "src"))
    if (file.path().extension() == ".h") {
      std::ifstream lines(file.path());
      for (std::string line; std::getline(lines, line);)
        if (line.find("TANDEM_FOR_PYTHON ") != line.npos) add_words(line, found);
    }
  return found;
}

/// The names that a mangled one of namespace tandem is made of; empty for others, such as containers of ours.
std::vector<std::string> names_in(const std::string& symbol) {
  static const std::regex of_tandem("^_Z(T[VIST]|GV)?NK?(?=6tandem)");
  std::smatch prefix;
  if (!std::regex_search(symbol, prefix, of_tandem)) return {};
  std::vector<std::string> names;
  for (size_t at = size_t(prefix.length()); at < symbol.size() && std::isdigit(symbol[at]);) {
    size_t digits = 0;
    const size_t length = std::stoul(symbol.substr(at), &digits);
    names.push_back(symbol.substr(at + digits, length));
    at += digits + length;
  }
  return names;
}

bool may_be_exported(const std::string& symbol, const Words& words) {
  const auto names = names_in(symbol);
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return words.contains(name); });
}

Words exported_symbols() {
  std::unique_ptr<FILE, int (*)(FILE*)> list(popen("nm -D --defined-only " TANDEM_LIBRARY, "r"), pclose);
  Words found;
  std::array<char, 8192> line;
  while (list && std::fgets(line.data(), int(line.size()), list.get())) {
    std::istringstream columns(line.data());
    std::string address, kind, symbol;
    columns >> address >> kind >> symbol;
    found.insert(symbol);
  }
  return found;
}

TEST(Exports, AreWhatPublicHeadersDeclare) {
  const Words words = words_that_may_be_exported(), symbols = exported_symbols();
  for (const std::string& symbol : symbols)
    EXPECT_TRUE(may_be_exported(symbol, words)) << symbol << " is exported, and no public header has it";
  const auto ours = std::count_if(symbols.begin(), symbols.end(),
                                  [](const std::string& symbol) { return !names_in(symbol).empty(); });
  EXPECT_GT(ours, 80);
  EXPECT_LT(ours, 200) << "a public header may declare it, but is it meant to be used?";
}

TEST(Exports, HaveTheTypesThatUsersCatchAndDeriveFrom) {
  const Words symbols = exported_symbols();
  for (const char* symbol :
       {"_ZTIN6tandem5ErrorE", "_ZTIN6tandem16UnsupportedErrorE", "_ZTIN6tandem13ContractErrorE",
        "_ZTIN6tandem10CacheErrorE", "_ZTIN6tandem7BackendE", "_ZTVN6tandem7BackendE",
        "_ZTIN6tandem10ExecutableE", "_ZNK6tandem5Graph6verifyEv"})
    EXPECT_TRUE(symbols.contains(symbol)) << symbol;
}

TEST(Exports, AnInnerNameIsSeen) {
  const Words words = words_that_may_be_exported();
  EXPECT_TRUE(may_be_exported("_ZNK6tandem5Graph6verifyEv", words));
  EXPECT_TRUE(may_be_exported("_ZN6tandem6Tracer7currentEv", words));
  EXPECT_FALSE(may_be_exported("_ZN6tandem6Tracer10drop_fakesEv", words));
  EXPECT_FALSE(may_be_exported("_ZTVN6tandem12EagerBackendE", words));
}

}  // namespace
