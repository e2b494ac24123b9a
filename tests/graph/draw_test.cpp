// Every node, input and output is in the picture, and what keeps a picture from being made is said.
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>

#include "graph/build.h"

using namespace tandem;
using namespace tandem::test;

namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem-draw-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

std::string start_of(const std::filesystem::path& path) {
  std::string bytes(300, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), std::ptrdiff_t(bytes.size()));
  return bytes;
}

bool dot_is_installed() { return std::system("command -v dot > /dev/null 2>&1") == 0; }

}  // namespace

TEST(Draw, dot_has_every_node_input_output_and_edge) {
  Graph graph = small_graph();
  graph.set_name(Value{1}, "od\"d\\");
  graph.add_constant(dense({2}), at::ones({2}));
  const std::string dot = graph.to_dot();
  for (const char* part :
       {"aten::add.Tensor", "aten::relu", "%x f32[3, 4]", "%od\\\"d\\\\ f32[3, 4]", "%4 f32[2]", "output 0",
        "output 1: none", "model.cpp:3", "v0 -> n0", "v1 -> n0", "n0 -> n1", "n1 -> o0"})
    EXPECT_EQ(count(dot, part),
              std::string(part).starts_with("%x") || std::string(part).starts_with("%od") ? 2u : 1u)
        << part << " in\n"
        << dot;
}

TEST(Draw, writes_svg_and_png) {
  if (!dot_is_installed()) GTEST_SKIP() << "needs the program dot of graphviz";
  Folder folder;
  small_graph().draw(folder.path / "graph.svg");
  EXPECT_NE(start_of(folder.path / "graph.svg").find("<svg"), std::string::npos);
  small_graph().draw(folder.path / "graph.png");
  EXPECT_EQ(start_of(folder.path / "graph.png").substr(1, 3), "PNG");
}

TEST(Draw, says_what_keeps_it_from_drawing) {
  Folder folder;
  auto said = [&](const std::filesystem::path& path) {
    return complaint_of([&] { small_graph().draw(path); });
  };
  EXPECT_NE(said(folder.path / "graph.jpg").find("as .svg or .png, not as \".jpg\""), std::string::npos)
      << said(folder.path / "graph.jpg");
  EXPECT_NE(said(folder.path / "graph").find(".svg or .png"), std::string::npos);
  const std::string search = std::getenv("PATH");
  setenv("PATH", folder.path.c_str(), 1);
  const std::string without = said(folder.path / "graph.svg");
  setenv("PATH", search.c_str(), 1);
  EXPECT_NE(without.find("install graphviz"), std::string::npos) << without;
  if (!dot_is_installed() && !HasFailure()) GTEST_SKIP() << "needs the program dot of graphviz for the rest";
  EXPECT_NE(said(folder.path / "no" / "graph.svg").find("could not write"), std::string::npos);
}
