#include "commands.h"

#include <CLI/CLI.hpp>
#include <c10/util/Exception.h>

#include <iostream>

namespace {

int complain(const std::string& what) {
  std::cerr << "tandem: " << what << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Tandem: an ahead-of-time autograd compiler for libtorch", "tandem");
  app.require_subcommand(1);
  tandem::cli::add_train(app);
  tandem::cli::add_bench(app);
  tandem::cli::add_explain(app);
  tandem::cli::add_cache(app);
  tandem::cli::add_why(app);
  tandem::cli::add_trace(app);
  tandem::cli::add_doctor(app);
  tandem::cli::add_fuzz(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const tandem::cli::Exit& exit) {
    return exit.status;
  } catch (const c10::Error& error) {
    return complain(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return complain(error.what());
  }
  return 0;
}
