#include "bench.h"
#include "commands.h"
#include "process.h"

#include <tandem/backend.h>
#include <tandem/compile.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <CLI/CLI.hpp>
#include <torch/cuda.h>
#include <torch/version.h>

#include <iostream>

#include "compile/machine_costs.h"

#ifndef TANDEM_VERSION
#define TANDEM_VERSION "unknown"
#endif

namespace tandem::cli {

namespace {

/// One thing that was looked at. Optional things may be missing; `without` then says what does not work.
struct Finding {
  std::string name, found;  ///< `found` empty: missing
  bool necessary = false;
  std::string without;
};

/// Compiles and differentiates something small, and compares it with eager.
std::string try_engine() {
  auto function = [](const Tensors& in) { return Tensors{(in[0] * in[0]).tanh().sum()}; };
  const at::Tensor x = at::arange(6, at::kFloat).requires_grad_(), y = x.detach().clone().requires_grad_();
  try {
    compile(function)({x})[0].backward();
    function({y})[0].backward();
  } catch (const std::exception& error) {
    std::cerr << "tandem: the engine fails: " << error.what() << "\n";
    return {};
  }
  return at::equal(x.grad(), y.grad()) ? "compiles and differentiates as eager does" : "";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string path_of(const std::optional<std::filesystem::path>& path) { return path ? path->string() : ""; }

/// The first line of what a program says about its version, wherever it says it; empty when the program is
/// not there.
std::string version_of(const std::string& program, const std::string& option) {
  const Finished asked = run_program({"sh", "-c", program + " " + option + " 2>&1"});
  return asked.status == 0 ? asked.output.substr(0, asked.output.find('\n')) : "";
}

std::string cuda_devices() {
  return torch::cuda::is_available() ? std::to_string(torch::cuda::device_count()) + " device(s)" : "";
}

std::string costs_on(c10::Device device) {
  const MachineRates found = machine_rates(device);
  return std::string(found.is_measured ? "measured: " : "built in: ") + describe(found.rates);
}

std::vector<Finding> examine() {
  const auto python = find_python_with_torch();
  return {
      {"tandem", TANDEM_VERSION, true},
      {"libtorch", TORCH_VERSION, true},
      {"compiler", __VERSION__, true},
      {"cpu", at::get_cpu_capability() + ", " + std::to_string(at::get_num_threads()) + " threads", true},
      {"costs on cpu", costs_on(c10::kCPU), true},
      {"backends", joined(backends()), true},
      {"engine", try_engine(), true},
      {"cuda", cuda_devices(), false, "--device cuda"},
      {"costs on cuda", torch::cuda::is_available() ? costs_on(c10::Device(c10::kCUDA, 0)) : "", false,
       "--device cuda"},
      {"dot", version_of("dot", "-V"), false, "drawings of graphs (Debian package graphviz)"},
      {"rsvg-convert", version_of("rsvg-convert", "--version"), false,
       "loss curves as PNG (Debian package librsvg2-bin)"},
      {"python with torch", python ? python->torch_version + " in " + python->program : "", false,
       "bench --peers (set TANDEM_PYTHON to a Python that can import torch)"},
      {"training text", path_of(find_shipped("data")), false, "train without --data"},
      {"peer script", path_of(find_shipped("bench/torch_peers.py")), false, "bench --peers"},
  };
}

void print_json(const std::vector<Finding>& findings, bool healthy) {
  Json line = Json::object(), missing = Json::array();
  for (const Finding& finding : findings) {
    line[finding.name] = finding.found.empty() ? Json() : Json(finding.found);
    if (finding.found.empty()) missing.push_back(finding.name);
  }
  line["missing"] = missing;
  line["healthy"] = healthy;
  std::cout << line.dump() << std::endl;
}

void print_text(const std::vector<Finding>& findings, bool healthy) {
  for (const Finding& finding : findings) {
    const std::string state = !finding.found.empty() ? finding.found
                              : finding.necessary    ? "MISSING, and necessary"
                                                     : "not found; without it: no " + finding.without;
    std::cout << finding.name << std::string(20 - finding.name.size(), ' ') << state << "\n";
  }
  std::cout << (healthy ? "Everything necessary is there.\n" : "Something necessary is missing.\n");
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("doctor", "Says which versions are in use, what was found and what is missing");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "One JSON object");
  command->footer("Status 0 when everything necessary is there, 1 otherwise.");
  command->callback([json] {
    const std::vector<Finding> findings = examine();
    const bool healthy = std::none_of(findings.begin(), findings.end(),
                                      [](const Finding& f) { return f.necessary && f.found.empty(); });
    if (*json)
      print_json(findings, healthy);
    else
      print_text(findings, healthy);
    if (!healthy) throw Exit{1};
  });
}

}  // namespace tandem::cli
