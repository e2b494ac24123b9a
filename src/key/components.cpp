#include "key/components.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/sha256.h"

namespace tandem::cache {
namespace {

/// Another format is another key, so that what was kept under the old one is never found.
constexpr std::string_view key_format = "tandem key 1\n";

/// Takes the next line off the front; none is left when the text is empty.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

std::string shown(std::string_view line, bool ended) { return ended ? "(nothing)" : std::string(line); }

std::string first_differing_line(std::string_view first, std::string_view second) {
  for (size_t number = 1; !first.empty() || !second.empty(); ++number) {
    const bool first_ended = first.empty(), second_ended = second.empty();
    const std::string_view a = take_line(first), b = take_line(second);
    if (a == b && first_ended == second_ended) continue;
    return " at line " + std::to_string(number) + ":\n  first:  " + shown(a, first_ended) +
           "\n  second: " + shown(b, second_ended) + "\n";
  }
  return "\n";
}

std::string difference(const Component& first, const Component& second) {
  const bool readable = !first.text.empty() && !second.text.empty();
  return first.name + " differs" + (readable ? first_differing_line(first.text, second.text) : "\n");
}

}  // namespace

Component component_of(std::string name, std::string text) {
  std::string hash = sha256(text);
  return {std::move(name), std::move(hash), std::move(text)};
}

std::string key_of(const Components& components) {
  std::vector<std::string> lines;
  for (const Component& component : components) lines.push_back(component.name + ' ' + component.hash + '\n');
  std::sort(lines.begin(), lines.end());
  std::string all(key_format);
  for (const std::string& line : lines) all += line;
  return sha256(all);
}

std::string explain_difference(const Components& first, const Components& second) {
  std::map<std::string, std::pair<const Component*, const Component*>> pairs;
  for (const Component& component : first) pairs[component.name].first = &component;
  for (const Component& component : second) pairs[component.name].second = &component;
  std::string text;
  for (const auto& [name, pair] : pairs) {
    const auto& [a, b] = pair;
    if (!b)
      text += name + " is a component of the first alone\n";
    else if (!a)
      text += name + " is a component of the second alone\n";
    else if (a->hash != b->hash)
      text += difference(*a, *b);
  }
  return text;
}

}  // namespace tandem::cache
