/// Which options are part of a key, and why.
#pragma once

#include <tandem/options.h>

namespace tandem {

/// One field of Options.
struct OptionRow {
  const char* name;
  std::optional<std::string> text;  ///< nothing: the field is no part of the component "options"
  const char* reason;
};

/// Every field, in the order of declaration.
std::vector<OptionRow> option_rows(const Options& options);

/// A line for each field that is part of it.
std::string options_text(const Options& options);

}  // namespace tandem
