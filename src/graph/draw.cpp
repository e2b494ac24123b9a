// A picture of a graph: boxes are calls, edges are values; what was recorded in the backward is drawn apart
// by colour.
#include <tandem/error.h>
#include <tandem/graph.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/process.h"
#include "graph/vocabulary.h"
#include "ops/facts.h"

namespace tandem {
namespace {

std::string shape(const TensorMeta& meta) { return dtype_word(meta.dtype) + dims_word(meta.sizes); }

/// What graphviz needs between quotes: its escapes are not ours.
std::string label(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

class Dot {
 public:
  explicit Dot(const Graph& graph) : graph_(graph), maker_(graph.value_count()) {}

  std::string write() {
    text_ =
        "digraph {\n  node [shape=box, style=filled, fillcolor=white, fontname=Helvetica];\n  edge "
        "[fontname=Helvetica, fontsize=10];\n";
    for (Value v : graph_.inputs()) source(v, "lightblue");
    for (const auto& constant : graph_.constants()) source(constant.first, "lightgrey");
    for (size_t i = 0; i < graph_.nodes().size(); ++i) call(i);
    for (size_t i = 0; i < graph_.outputs().size(); ++i) output(i);
    return text_ + "}\n";
  }

 private:
  void source(Value v, const char* colour) {
    const std::string id = 'v' + std::to_string(v.id);
    text_ += "  " + id + " [shape=ellipse, fillcolor=" + colour +
             ", label=" + label('%' + graph_.name(v) + ' ' + shape(graph_.meta(v))) + "];\n";
    maker_.at(size_t(v.id)) = id;
  }

  void call(size_t index) {
    const Node& node = graph_.nodes()[index];
    const std::string id = 'n' + std::to_string(index);
    const char* colour = node.phase == Phase::Backward ? "lightsalmon" : "lightyellow";
    text_ += "  " + id + " [fillcolor=" + colour + ", label=" + label(full_name(node.op)) +
             (node.location.empty() ? "" : ", tooltip=" + label(node.location)) + "];\n";
    for_each_argument(node, [&](Value v) { edge(v, id); });
    for_each_result(node, [&](Value v) { maker_.at(size_t(v.id)) = id; });
  }

  void output(size_t index) {
    const Value v = graph_.outputs()[index];
    const std::string id = 'o' + std::to_string(index);
    text_ += "  " + id + " [shape=ellipse, fillcolor=lightgreen, label=" +
             label("output " + std::to_string(index) + (v ? "" : ": none")) + "];\n";
    if (v) edge(v, id);
  }

  void edge(Value v, const std::string& to) {
    const std::string& from = maker_.at(size_t(v.id));
    if (!from.empty())
      text_ += "  " + from + " -> " + to +
               " [label=" + label('%' + graph_.name(v) + ' ' + shape(graph_.meta(v))) + "];\n";
  }

  const Graph& graph_;
  std::string text_;
  std::vector<std::string> maker_;
};

/// A file that is gone when this is.
struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / "tandem-XXXXXX").string();
  TemporaryFile() {
    const int file = mkstemp(path.data());
    if (file < 0)
      throw Error("No temporary file can be made as " + path + ": " + std::strerror(errno) +
                  "; point TMPDIR at a folder that can be written.");
    close(file);
  }
  ~TemporaryFile() { unlink(path.c_str()); }
};

void run_dot(const std::string& format, const std::string& from, const std::string& to) {
  const int status = run_program({"dot", "-T" + format, "-o" + to, from}).status;
  if (status == 127)
    throw Error("Drawing a graph needs graphviz's program dot, which is not on the PATH; install graphviz.");
  if (status != 0)
    throw Error("graphviz could not write " + to + "; check that its folder exists and can be written.");
}

}  // namespace

std::string Graph::to_dot() const { return Dot(*this).write(); }

void Graph::draw(const std::filesystem::path& path) const {
  const std::string ending = path.extension().string();
  if (ending != ".svg" && ending != ".png")
    throw Error("A graph is drawn as .svg or .png, not as " + in_quotes(ending) +
                "; choose one of these endings for " + path.string() + ".");
  TemporaryFile file;
  std::ofstream(file.path) << to_dot();
  run_dot(ending.substr(1), file.path, path.string());
}

}  // namespace tandem
