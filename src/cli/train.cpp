#include "bench.h"
#include "commands.h"
#include "corpus.h"
#include "curves.h"
#include "measure.h"
#include "process.h"
#include "table.h"

#include <tandem/cache.h>
#include <tandem/compile.h>
#include <tandem/error.h>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <torch/optim/adamw.h>

#include <csignal>
#include <fstream>
#include <iostream>

#include <unistd.h>

namespace fs = std::filesystem;

namespace tandem::cli {

namespace {

constexpr int64_t batch_size = 16, context = 64;
// what shells report for a program ended by Ctrl-C: a script can tell a run cut short from a whole one
constexpr int interrupted_status = 130;

struct TrainOptions {
  int64_t steps = 1000;
  std::string backend = Options{}.backend, device = "cpu";
  int threads = 0;
  uint64_t seed = 0;
  double learning_rate = 1e-3;
  fs::path data, out = "out";
  bool json = false;
};

volatile std::sig_atomic_t interrupted = 0;

/// The first Ctrl-C asks for an end after the current step; a second one ends the program at once.
void listen_for_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

using Loss = std::function<at::Tensor(const Tensors&)>;

/// One of the two models that learn the same from the same.
struct Trainee {
  bench::Benchmark gpt;
  Loss loss;
  torch::optim::AdamW optimiser;
  std::vector<double> losses, times;

  Trainee(bench::Benchmark model, Loss loss_, double learning_rate)
      : gpt(std::move(model)),
        loss(std::move(loss_)),
        optimiser(bench::parameters(gpt), torch::optim::AdamWOptions(learning_rate)) {}

  /// Forward, backward, update. Equal seeds give equal dropout.
  void step(const Tensors& batch, uint64_t seed, c10::Device device) {
    at::manual_seed(seed);
    synchronize(device);
    const double start = seconds_now();
    optimiser.zero_grad();
    at::Tensor value = loss(batch);
    value.backward();
    optimiser.step();
    synchronize(device);
    times.push_back(seconds_now() - start);
    losses.push_back(value.item<double>());
  }
};

/// Step, loss, times and time left: rewritten in place on a terminal, else a line every few seconds.
class Progress {
 public:
  explicit Progress(int64_t steps) : steps_(steps), terminal_(isatty(STDERR_FILENO)) {}

  void show(const Trainee& eager, const Trainee& compiled) {
    const int64_t done = compiled.losses.size();
    const double now = seconds_now();
    const bool last = done == steps_ || interrupted;
    if (now - shown_ < (terminal_ ? 0.1 : 5.0) && done > 1 && !last) return;
    shown_ = now;
    const double eager_step = median(eager.times), compiled_step = median(compiled.times);
    const int64_t left = std::llround((steps_ - done) * (eager_step + compiled_step));
    char line[200];
    std::snprintf(line, sizeof line,
                  "step %ld/%ld  loss %.4f  eager %s a step, compiled %s a step  %ld:%02ld left",
                  static_cast<long>(done), static_cast<long>(steps_), compiled.losses.back(),
                  duration(eager_step).c_str(), duration(compiled_step).c_str(), static_cast<long>(left / 60),
                  static_cast<long>(left % 60));
    if (terminal_)
      std::cerr << "\r\x1b[K" << line << (last ? "\n" : "") << std::flush;
    else
      std::cerr << line << std::endl;
  }

 private:
  int64_t steps_;
  bool terminal_;
  double shown_ = 0;
};

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

/// The two loss curves as SVG and PNG; the message says why there is no PNG, where there is none.
struct Pictures {
  fs::path svg, png;
  std::string message;
};

Pictures draw_losses(const Trainee& eager, const Trainee& compiled, const fs::path& folder) {
  Pictures pictures{folder / "loss.svg", folder / "loss.png", {}};
  const Chart chart{
      "A character model learns, eager and compiled",
      "step",
      "loss (nats per character)",
      {{"eager", "#8ecae6", 7, eager.losses}, {"compiled by Tandem", "#7a1f3d", 1.6, compiled.losses}}};
  fs::create_directories(folder);
  std::ofstream file(pictures.svg);
  file << to_svg(chart);
  file.close();
  if (!file) throw Error(pictures.svg.string() + " cannot be written; name another folder with --out");
  pictures.message = convert_to_png(pictures.svg, pictures.png);
  return pictures;
}

void report(const Trainee& eager, const Trainee& compiled, const Explanation& explanation,
            const Pictures& pictures, bool json) {
  const double eager_step = median(eager.times), compiled_step = median(compiled.times),
               compile = explanation.trace_seconds + explanation.compile_seconds;
  const double difference = largest_difference(eager.losses, compiled.losses),
               saved = cache::stats({.local = false}).seconds_saved;
  if (!pictures.message.empty()) std::cerr << "tandem: " << pictures.message << "\n";
  if (json) {
    std::cout << Json{{"steps", compiled.losses.size()},
                      {"interrupted", interrupted != 0},
                      {"compile_s", compile},
                      {"cache_state", explanation.cache_state},
                      {"cache_saved_s", saved},
                      {"eager_ms", eager_step * 1e3},
                      {"tandem_ms", compiled_step * 1e3},
                      {"speedup", eager_step / compiled_step},
                      {"saved_bytes", explanation.saved_bytes},
                      {"eager_saved_bytes", explanation.eager_saved_bytes},
                      {"first_loss", compiled.losses.front()},
                      {"last_loss", compiled.losses.back()},
                      {"max_loss_difference", difference},
                      {"svg", pictures.svg.string()},
                      {"png", pictures.message.empty() ? Json(pictures.png.string()) : Json()}}
                     .dump()
              << std::endl;
    return;
  }
  char exact[32];
  std::snprintf(exact, sizeof exact, "%.3g", difference);
  std::cout << table({{"after " + std::to_string(compiled.losses.size()) + " steps", "eager", "compiled"},
                      {"compile time", "-", duration(compile)},
                      {"cache", "-",
                       explanation.cache_state == "hit" ? "hit, saved " + duration(saved)
                                                        : explanation.cache_state},
                      {"time per step", duration(eager_step), duration(compiled_step)},
                      {"kept between forward and backward", megabytes(explanation.eager_saved_bytes),
                       megabytes(explanation.saved_bytes)},
                      {"speed-up", factor(1), factor(eager_step / compiled_step)},
                      {"last loss", fixed(eager.losses.back(), 4), fixed(compiled.losses.back(), 4)},
                      {"largest difference of losses", "-", exact}})
            << "loss curves: " << pictures.svg.string()
            << (pictures.message.empty() ? ", " + pictures.png.string() : "") << "\n";
}

fs::path data_folder(const TrainOptions& options) {
  if (!options.data.empty()) return options.data;
  if (auto shipped = find_shipped("data")) return *shipped;
  throw Error(
      "the text that ships with Tandem is neither beside the build folder nor under share/tandem of the "
      "installation; name a folder of .txt files with --data");
}

void train(const TrainOptions& options) {
  listen_for_interrupt();
  if (options.threads > 0) at::set_num_threads(options.threads);
  const c10::Device device(options.device);
  const Corpus corpus = load_corpus(data_folder(options), context);
  const bench::GptShape shape{.layers = 4,
                              .width = 128,
                              .heads = 4,
                              .vocabulary = corpus.vocabulary,
                              .context = context,
                              .dropout = 0.1};
  auto model = [&] { return bench::make_gpt(shape, batch_size, device, options.seed); };

  bench::Benchmark original = model(), twin = model();
  Compiled compiled_loss = compile([loss = twin.loss](const Tensors& in) { return Tensors{loss(in)}; },
                                   {.backend = options.backend, .name = "char_gpt", .watch = {twin.module}});
  Trainee eager(original, original.loss, options.learning_rate);
  Trainee compiled(twin, [&](const Tensors& in) { return compiled_loss(in)[0]; }, options.learning_rate);

  std::mt19937_64 random(options.seed);
  Progress progress(options.steps);
  Tensors batch;
  for (int64_t step = 0; step < options.steps && !interrupted; ++step) {
    auto [pieces, following] = draw_batch(corpus, batch_size, context, random);
    batch = {pieces.to(device), following.to(device)};
    eager.step(batch, options.seed + step, device);
    compiled.step(batch, options.seed + step, device);
    progress.show(eager, compiled);
  }
  report(eager, compiled, compiled_loss.explain(batch), draw_losses(eager, compiled, options.out),
         options.json);
  if (interrupted) throw Exit{interrupted_status};
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand(
      "train", "Trains a small character-level GPT, eager and compiled in turn, and draws both loss curves");
  command->footer(
      "Ctrl-C ends it after the current step, with the table and the picture of what was done so far, and "
      "status 130; a second one ends it at once.");
  command->add_option("--steps", options->steps, "How many steps each of the two takes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--backend", options->backend, "Which backend compiles")->capture_default_str();
  command->add_option("--device", options->device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command
      ->add_option("--threads", options->threads,
                   "Threads of libtorch's CPU operators; its own choice when left out")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", options->seed, "Of weights, batches and dropout")->capture_default_str();
  command->add_option("--learning-rate", options->learning_rate, "Of AdamW")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--data", options->data,
                      "Folder of .txt files to learn from; the text that ships with Tandem when left out");
  command->add_option("--out", options->out, "Folder for loss.svg and loss.png")->capture_default_str();
  command->add_flag("--json", options->json, "The table as one JSON object");
  command->callback([options] { train(*options); });
}

}  // namespace tandem::cli
