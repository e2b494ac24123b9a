#include "bench.h"
#include "process.h"

#include <tandem/error.h>

#include <ATen/Parallel.h>

namespace tandem::cli {

Json run_peer(const std::string& model, const BenchOptions& options, double seconds,
              const std::string& cache_folder) {
  static const auto python = find_python_with_torch();
  if (!python)
    throw Error(
        "--peers needs a Python that can import torch; set TANDEM_PYTHON to one or leave --peers out");
  const auto script = find_shipped("bench/torch_peers.py");
  if (!script)
    throw Error(
        "--peers needs bench/torch_peers.py, which is neither beside the build folder nor under share/tandem "
        "of the installation");
  std::vector<std::string> command{python->program,
                                   script->string(),
                                   model,
                                   "--device",
                                   options.device,
                                   "--seconds",
                                   std::to_string(seconds),
                                   "--threads",
                                   std::to_string(at::get_num_threads())};
  command.insert(command.end(), {"--layers", std::to_string(options.gpt.layers), "--vocabulary",
                                 std::to_string(options.gpt.vocabulary)});
  const Finished run = run_program(command, {{"TORCHINDUCTOR_CACHE_DIR", cache_folder}});
  if (run.status != 0)
    throw Error(script->string() + " ended with status " + std::to_string(run.status) + " on " + model +
                "; its own messages are above");
  return Json::parse(run.output);
}

}  // namespace tandem::cli
