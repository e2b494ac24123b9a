/// Eager differentiation that no later write can disturb.
#pragma once

namespace tandem::fuzz {

/// While one lives, the values that autograd saves become copies when `freeze` is called, in the same layout,
/// and whoever writes the originals afterwards disturbs nothing.
class SavedCopies {
 public:
  SavedCopies();
  ~SavedCopies();
  SavedCopies(const SavedCopies&) = delete;

  /// Copies what has been saved so far; does nothing where no SavedCopies lives. Not done when a value is
  /// saved, since some operators fill what they save afterwards.
  static void freeze();
};

}  // namespace tandem::fuzz
