/// The name under which compiled code is kept: a hash over everything that can change it, with its components
/// kept apart.
#pragma once

#include <string>
#include <vector>

namespace tandem::cache {

/// One part of what a key is made of. The text is for readers who ask why two keys differ; it may be empty,
/// and then only the hash can be compared.
struct Component {
  std::string name, hash, text;
};
using Components = std::vector<Component>;

/// A component that is all in its text.
Component component_of(std::string name, std::string text);

/// SHA-256, in hex, over the format's version and the names and hashes of the components, whatever their
/// order.
std::string key_of(const Components& components);

/// Which components differ, a paragraph each, down to the first differing line where both have a text; empty
/// when none does.
std::string explain_difference(const Components& first, const Components& second);

}  // namespace tandem::cache
