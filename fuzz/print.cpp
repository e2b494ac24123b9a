#include "fuzz/print.h"

#include "fuzz/views.h"

#include <map>
#include <set>
#include <sstream>

namespace tandem::fuzz {

namespace {

std::string place(size_t k) { return "v" + std::to_string(k); }

std::string braces(const Ints& ints) {
  std::string text;
  for (int64_t i : ints) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return "{" + text + "}";
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

/// Stands for a tensor in `laid_out`, which then writes the layout instead of making it.
struct Written {
  std::string text;
  Written transpose(int64_t a, int64_t b) const {
    return {text + ".transpose(" + std::to_string(a) + ", " + std::to_string(b) + ")"};
  }
  Written slice(int64_t d, int64_t a, int64_t b, int64_t s) const {
    return {text + ".slice(" + std::to_string(d) + ", " + std::to_string(a) + ", " + std::to_string(b) +
            ", " + std::to_string(s) + ")"};
  }
  Written expand(const Ints& sizes) const { return {text + ".expand(" + braces(sizes) + ")"}; }
};

std::string numbers_text(at::ScalarType dtype, const Ints& sizes) {
  const std::string name = ", at::k" + std::string(c10::toString(dtype)) + ")";
  if (dtype == at::kLong) return "torch::randint(0, 3, " + braces(sizes) + name;
  if (dtype == at::kBool) return "torch::randint(0, 2, " + braces(sizes) + name;
  return "torch::randn(" + braces(sizes) + name;
}

std::string given_text(const Given& given) {
  if (given.origin == Origin::Same) return "scene.pool[" + std::to_string(given.of) + "]";
  if (given.origin == Origin::View) {
    std::string text = given_views()[given.view].text;
    replace_all(text, "x.", "scene.pool[" + std::to_string(given.of) + "].");
    return text;
  }
  return laid_out(given.layout, given.sizes,
                  [&](const Ints& sizes) { return Written{numbers_text(given.dtype, sizes)}; })
             .text +
         (given.requires_grad ? ".requires_grad_()" : "");
}

void print_given(std::ostream& out, const Program& program) {
  out << "fuzz::Scene given(uint64_t seed, const fuzz::Scene* before) {\n  torch::manual_seed(seed);\n  "
         "fuzz::Scene scene;\n";
  for (size_t k = 0; k < program.given.size(); ++k) {
    const Given& given = program.given[k];
    const bool leaf =
        given.requires_grad && (given.origin == Origin::Leaf || given.origin == Origin::Computed);
    std::string made = given_text(given);
    if (given.captured) made = "before != nullptr ? before->pool[" + std::to_string(k) + "] : " + made;
    if (leaf) out << "  scene.leaves.push_back(" << made << ");\n";
    if (leaf)
      made = std::string("scene.leaves.back()") + (given.origin == Origin::Computed ? ".clone()" : "");
    out << "  scene.pool.push_back(" << made << ");" << (given.captured ? "  // captured" : "") << "\n";
  }
  out << "  return scene;\n}\n";
}

std::string step_text(const Step& step) {
  std::string text = rows()[step.row].text;
  for (size_t k = 0; k < step.arguments.size(); ++k)
    replace_all(text, "t[" + std::to_string(k) + "]", place(step.arguments[k]));
  for (size_t k = 0; k < step.ints.size(); ++k)
    replace_all(text, "i[" + std::to_string(k) + "]", std::to_string(step.ints[k]));
  return text;
}

/// Places that something reads; the others need no name.
std::set<size_t> places_read(const Program& program) {
  std::set<size_t> read(program.outputs.begin(), program.outputs.end());
  for (const Step& step : program.steps) read.insert(step.arguments.begin(), step.arguments.end());
  return read;
}

void print_step(std::ostream& out, const Step& step, const std::set<size_t>& read) {
  const Row& row = rows()[step.row];
  std::string before, text = step_text(step) + ";", after;
  std::vector<std::pair<size_t, size_t>> named;
  for (size_t r = 0; r < step.results.size(); ++r)
    if (read.contains(step.results[r])) named.emplace_back(r, step.results[r]);
  if (row.lists && !named.empty()) {
    const std::string list = "list" + std::to_string(named.front().second);
    before = "Tensors " + list + ";";
    text = list + " = " + text;
    for (auto [r, k] : named)
      after += "  at::Tensor " + place(k) + " = " + list + ".at(" + std::to_string(r) + ");\n";
  } else if (!named.empty()) {
    before = "at::Tensor " + place(named.front().second) + ";";
    text = place(named.front().second) + " = " + text;
  }
  if (step.no_grad) text = "{ at::NoGradGuard no_grad; " + text + " }";
  out << "  " << before << (before.empty() ? "" : " ") << text << "\n" << after;
}

}  // namespace

std::string to_cpp(const Program& program) {
  std::ostringstream out;
  print_given(out, program);
  out << "Tensors program(Tensors given) {\n";
  const std::set<size_t> read = places_read(program);
  for (size_t k = 0; k < program.given.size(); ++k)
    if (read.contains(k)) out << "  at::Tensor " << place(k) << " = given[" << k << "];\n";
  for (const Step& step : program.steps) print_step(out, step, read);
  out << "  return {";
  for (size_t k = 0; k < program.outputs.size(); ++k)
    out << (k == 0 ? "" : ", ") << place(program.outputs[k]);
  out << "};\n}\n// fuzz::Subject{given, {";
  const std::vector<size_t> arguments = arguments_of(program);
  for (size_t k = 0; k < arguments.size(); ++k) out << (k == 0 ? "" : ", ") << arguments[k];
  out << "}, program, " << program.data << ", " << (program.higher_orders ? "true" : "false") << "}\n";
  return out.str();
}

}  // namespace tandem::fuzz
