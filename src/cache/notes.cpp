#include "cache/notes.h"

#include <tandem/error.h>

#include "base/counters.h"
#include "base/log.h"
#include "cache/layout.h"

namespace tandem::cache {
namespace {

constexpr const char* notes_folder = "notes";

/// Frames tell an entry from an artifact; a note is told from both by where it lies.
constexpr Kind kind_of_notes = Kind::Entry;

bool has_folder(const CacheOptions& settled) { return settled.enabled && settled.local; }

void remove_unfinished_notes(const Folder& folder) {
  for (const std::string& name : names_in(folder))
    if (is_abandoned(folder, name)) remove_file(folder, name);
}

}  // namespace

std::optional<std::string> read_note(const CacheOptions& settled, const std::string& name) {
  check_name(name);
  if (!has_folder(settled)) return std::nullopt;
  try {
    const std::optional<Folder> root = find_folder(settled.directory);
    const std::optional<Folder> folder = root ? find_folder(*root, notes_folder) : std::nullopt;
    const Descriptor file = folder ? open_file(*folder, name) : Descriptor();
    const std::optional<std::string> bytes = file ? read_all(file) : std::nullopt;
    if (!bytes) return std::nullopt;
    Opened opened = open(kind_of_notes, name, *bytes, settled.signing_key);
    if (opened.complaint.empty()) return std::move(opened.payload);
    count("cache_corrupt");
    warn("the cached note " + name + " " + opened.complaint + "; it is made again");
    discard(*folder, name, file);
  } catch (const Error& error) {
    log("cache", std::string("a note cannot be read: ") + error.what());
  }
  return std::nullopt;
}

void write_note(const CacheOptions& settled, const std::string& name, const std::string& text) {
  check_name(name);
  if (!has_folder(settled)) return;
  try {
    const Folder folder = make_folder(make_folder(settled.directory), notes_folder);
    remove_unfinished_notes(folder);
    write_file(folder, name, seal(kind_of_notes, name, text, settled.signing_key));
  } catch (const Error& error) {
    log("cache", std::string("a note is not kept: ") + error.what());
  }
}

}  // namespace tandem::cache
