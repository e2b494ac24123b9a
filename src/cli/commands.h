/// The sub-commands of the `tandem` program; each adds itself to the parser and runs when it was named.
#pragma once

namespace CLI {
class App;
}

namespace tandem::cli {

void add_bench(CLI::App& app);
void add_cache(CLI::App& app);
void add_doctor(CLI::App& app);
void add_explain(CLI::App& app);
void add_fuzz(CLI::App& app);
void add_trace(CLI::App& app);
void add_train(CLI::App& app);
void add_why(CLI::App& app);

/// What a sub-command throws to end the program with a status of its own, everything having been said.
struct Exit {
  int status;
};

}  // namespace tandem::cli
