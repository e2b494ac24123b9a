/// Functions of others that take part in a compile, by name and version.
#pragma once

#include <tandem/options.h>
#include <tandem/passes.h>

namespace tandem {

/// The decompositions that a compile with these options applies.
DecompositionTable wanted_decompositions(const Options& options);
/// The passes that it runs on the graphs of a stage: registered ones, then those of the backend.
std::vector<Pass> wanted_passes(const Options& options, Stage stage);
/// Whether its random numbers are counter-based.
bool wants_counter_numbers(const Options& options);
/// The compiler that was given for graphs of a stage, or null: the backend compiles them.
const Compiler* own_compiler(const Options& options, Stage stage);

/// Whether forwards, backwards and inference are run by libtorch's own kernels, which ask for its settings
/// when they run: code of any other compiler may have them built in.
bool is_interpreted(const Options& options);

/// One such function; without name or version nobody can tell whether it is the one that it was.
struct NamedCode {
  /// role: what it does, as the start of a sentence ("the compiler of the backward")
  std::string role, name, version;
};

std::vector<NamedCode> compilers_of(const Options& options);
std::vector<NamedCode> partitioner_of(const Options& options);
/// Registered passes, by stage, in the order in which they run.
std::vector<NamedCode> passes_in_use();
std::vector<NamedCode> decompositions_of(const Options& options);

/// A line each.
std::string to_string(const std::vector<NamedCode>& code);
/// What is the matter with the first that has no name or no version, as the end of a sentence; empty when all
/// have both.
std::string first_unnamed(const std::vector<NamedCode>& code);

}  // namespace tandem
