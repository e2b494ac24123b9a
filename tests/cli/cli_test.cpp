#include <torch/csrc/jit/api/module.h>

#include <csignal>

#include "cli/program.h"
#include "native/code.h"

namespace {

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

TEST_F(Cli, HelpListsTheSubCommands) {
  EXPECT_EQ(run({"--help"}), 0);
  for (const char* command : {"train", "bench", "explain", "doctor", "cache", "why", "fuzz"})
    EXPECT_NE(output().find(std::string("\n  ") + command), std::string::npos) << output();
}

TEST_F(Cli, NoSubCommandIsAnError) { EXPECT_NE(run({}), 0); }

TEST_F(Cli, BenchPrintsOneObjectWithTheKeysOfTheApi) {
  ASSERT_EQ(
      run({"bench", "--model", "mlp", "--backend", "eager", "--seconds", "0.2", "--threads", "1", "--json"}),
      0)
      << errors();
  const Json line = object();
  std::vector<std::string> of_api = {"model",
                                     "device",
                                     "backend",
                                     "threads",
                                     "nodes",
                                     "eager_ms",
                                     "tandem_ms",
                                     "speedup",
                                     "max_error",
                                     "eager_first_s",
                                     "cold_s",
                                     "warm_s",
                                     "compile_s",
                                     "load_s",
                                     "saved_bytes",
                                     "eager_saved_bytes",
                                     "predicted_peak_bytes",
                                     "peak_bytes",
                                     "eager_peak_bytes"};
  of_api.insert(of_api.end(), {"held_bytes", "kernels", "library_calls"});
  EXPECT_EQ(keys(line), of_api);
  EXPECT_EQ(line["model"], "mlp");
  EXPECT_EQ(line["device"], "cpu");
  EXPECT_EQ(line["backend"], "eager");
  EXPECT_EQ(line["threads"], 1);
  EXPECT_EQ(line["max_error"], 0.0);
  EXPECT_TRUE(line["warm_s"].is_number() && line["load_s"].is_number() && line["load_s"] > 0);
  for (const char* positive :
       {"nodes", "eager_ms", "tandem_ms", "speedup", "eager_first_s", "cold_s", "compile_s", "saved_bytes",
        "eager_saved_bytes", "peak_bytes", "eager_peak_bytes"})
    EXPECT_GT(line[positive].get<double>(), 0) << positive;
  // 16 blocks of 256x256 weights, a bias and two vectors of the norm each: the gradients alone are live at a
  // step's end.
  EXPECT_GE(line["eager_peak_bytes"].get<int64_t>(), 16 * (256 * 256 + 3 * 256) * 4);
  EXPECT_LE(line["peak_bytes"], line["eager_peak_bytes"]);
  EXPECT_LE(line["saved_bytes"], line["eager_saved_bytes"]);
  EXPECT_EQ(line["kernels"], 0);
  EXPECT_GT(line["library_calls"], 0);
}

TEST_F(Cli, BenchCountsTheKernelsOfFuse) {
  if (!tandem::native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  ASSERT_EQ(run({"bench", "--model", "chain", "--backend", "fuse", "--seconds", "0.1", "--json"}), 0)
      << errors();
  EXPECT_GT(object()["kernels"], 0);
  EXPECT_LT(object()["library_calls"], 5);
}

TEST_F(Cli, BenchPrintsATableForPeople) {
  ASSERT_EQ(run({"bench", "--model", "mlp", "--seconds", "0.1"}), 0) << errors();
  EXPECT_NE(output().find("speed-up"), std::string::npos);
  EXPECT_NE(output().find("mlp"), std::string::npos);
}

TEST_F(Cli, BenchNamesAModelThatDoesNotExist) {
  EXPECT_NE(run({"bench", "--model", "alexnet", "--json"}), 0);
  EXPECT_NE(errors().find("alexnet"), std::string::npos) << errors();
  EXPECT_NE(errors().find("schnet"), std::string::npos) << "the message lists the models: " << errors();
  EXPECT_EQ(output(), "");
}

TEST_F(Cli, BenchNamesABackendThatDoesNotExist) {
  EXPECT_NE(run({"bench", "--model", "mlp", "--backend", "steam", "--json"}), 0);
  EXPECT_NE(errors().find("steam"), std::string::npos) << errors();
  EXPECT_EQ(output(), "");
}

TEST_F(Cli, OverheadPrintsTheKeysOfTheApi) {
  ASSERT_EQ(run({"bench", "--overhead", "--threads", "1", "--json"}), 0) << errors();
  const Json line = object();
  EXPECT_EQ(keys(line), (std::vector<std::string>{"eager_add_us", "record_adds", "eager_call_us", "call_us",
                                                  "eager_call_backward_us", "call_backward_us"}));
  for (auto& [name, value] : line.items()) EXPECT_GT(value.get<double>(), 0) << name;
}

TEST_F(Cli, FuzzSaysWhenTheCacheThatItIsToLoadFromIsOff) {
  setenv("TANDEM_CACHE", "off", 1);
  EXPECT_NE(run({"fuzz", "--programs", "1", "--cache"}), 0);
  EXPECT_NE(errors().find("TANDEM_CACHE=off"), std::string::npos) << errors();
  EXPECT_EQ(output(), "");
}

TEST_F(Cli, WarmStartLoadsFromTheFolderAndFromABundle) {
  ASSERT_EQ(run({"bench", "--warm-start", "--layers", "1", "--threads", "1", "--json"}), 0) << errors();
  const Json line = object();
  EXPECT_EQ(keys(line),
            (std::vector<std::string>{"compile_s", "compile_trace_s", "compile_backward_s", "compile_state",
                                      "compile_work", "load_s", "load_trace_s", "load_backward_s",
                                      "load_state", "load_work", "bundle_load_s", "bundle_load_trace_s",
                                      "bundle_load_backward_s", "bundle_load_state", "bundle_load_work",
                                      "entry_bytes", "artifact_bytes", "bundle_bytes"}));
  EXPECT_EQ(line["compile_state"], "miss");
  for (const char* kind : {"trace", "joint_trace", "partition", "compile_forward", "compile_backward"})
    EXPECT_EQ(line["compile_work"][kind], 1) << kind;
  for (const std::string prefix : {"load", "bundle_load"}) {
    EXPECT_EQ(line[prefix + "_state"], "hit") << prefix;
    EXPECT_EQ(line[prefix + "_work"], (Json{{"trace", 1}})) << prefix;
    EXPECT_GT(line[prefix + "_s"], 0.0) << prefix;
    EXPECT_LT(line[prefix + "_trace_s"], line[prefix + "_s"]) << prefix;
  }
  EXPECT_GT(line["entry_bytes"], 0);
  EXPECT_GT(line["artifact_bytes"], 0);
  EXPECT_GE(line["bundle_bytes"], line["entry_bytes"].get<int64_t>() + line["artifact_bytes"].get<int64_t>());
  ASSERT_EQ(run({"bench", "--warm-start", "--layers", "1", "--threads", "1"}), 0) << errors();
  for (const char* part : {"imported bundle", "its code"})
    EXPECT_NE(output().find(part), std::string::npos) << output();
}

TEST_F(Cli, DoctorSaysWhatIsThere) {
  ASSERT_EQ(run({"doctor", "--json"}), 0) << errors();
  const Json line = object();
  EXPECT_EQ(line["healthy"], true);
  for (const char* name : {"tandem", "libtorch", "compiler", "cpu", "backends", "engine"})
    EXPECT_TRUE(line[name].is_string()) << name;
  EXPECT_NE(line["backends"].get<std::string>().find("eager"), std::string::npos);
  for (const auto& name : line["missing"]) EXPECT_TRUE(line[name.get<std::string>()].is_null()) << name;
}

TEST_F(Cli, ExplainPrintsGraphsAndContractOfAScript) {
  torch::jit::Module script("Script");
  script.register_parameter("weight", at::ones({3}).requires_grad_(), /*is_buffer=*/false);
  script.define("def forward(self, x):\n  return (x * self.weight).tanh()\n");
  const std::string file = folder / "script.pt";
  script.save(file);
  ASSERT_EQ(run({"explain", file, "--input", "2x3:f32", "--json"}), 0) << errors();
  const Json line = object();
  EXPECT_NE(line["forward"].get<std::string>().find("aten::tanh"), std::string::npos) << line["forward"];
  EXPECT_NE(line["backward"].get<std::string>().find("aten::tanh_backward"), std::string::npos)
      << line["backward"];
  EXPECT_NE(line["contract"].get<std::string>().find("'x'"), std::string::npos) << line["contract"];
  EXPECT_GT(line["saved"].size(), 0u);
  for (const Json& value : line["saved"]) EXPECT_NE(value["why"], "") << value;
  EXPECT_GT(line["kernels"].size(), 0u);
  for (const Json& kernel : line["kernels"]) EXPECT_EQ(kernel["generated"], false) << kernel;
  ASSERT_EQ(run({"explain", file, "--input", "2x3"}), 0) << errors();
  EXPECT_NE(output().find("\nbackward\n"), std::string::npos) << output();
  EXPECT_NE(output().find("of libraries"), std::string::npos) << output();
  EXPECT_NE(run({"explain", file, "--input", "2x:f32"}), 0);
  EXPECT_NE(errors().find("2x:f32"), std::string::npos) << errors();
  EXPECT_NE(run({"explain", file, "--input", "2x3:f33"}), 0);
  EXPECT_NE(errors().find("f33"), std::string::npos) << errors();
  EXPECT_NE(run({"explain", file}), 0) << "the script takes one argument";
}

TEST_F(Cli, TrainDrawsTwoEqualCurves) {
  ASSERT_EQ(run({"train", "--steps", "3", "--out", folder / "pictures", "--json"}), 0) << errors();
  const Json line = object();
  EXPECT_EQ(line["steps"], 3);
  EXPECT_EQ(line["interrupted"], false);
  EXPECT_EQ(line["max_loss_difference"], 0.0);
  EXPECT_LT(line["last_loss"], line["first_loss"]);
  const std::string svg = read_file(folder / "pictures" / "loss.svg"),
                    png = read_file(folder / "pictures" / "loss.png");
  EXPECT_EQ(svg.substr(0, 4), "<svg");
  EXPECT_NE(svg.find("eager"), std::string::npos);
  size_t curves = 0;
  for (size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1))
    ++curves;
  EXPECT_EQ(curves, 2u);
  EXPECT_EQ(png.substr(0, 4), "\x89PNG");
  EXPECT_NE(errors().find("step 3/3"), std::string::npos) << errors();
}

TEST_F(Cli, TrainSurvivesAMissingPngWriter) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder.c_str(), 1);
  const int status = run({"train", "--steps", "1", "--out", folder / "pictures", "--json"});
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(status, 0) << errors();
  EXPECT_TRUE(object()["png"].is_null());
  EXPECT_NE(errors().find("librsvg2-bin"), std::string::npos) << errors();
  EXPECT_TRUE(fs::exists(folder / "pictures" / "loss.svg"));
}

TEST_F(Cli, TrainSaysWhenThereIsNoText) {
  EXPECT_NE(run({"train", "--steps", "1", "--data", folder / "nowhere", "--out", folder}), 0);
  EXPECT_NE(errors().find("nowhere"), std::string::npos) << errors();
}

TEST_F(Cli, TrainEndsCleanlyWhenInterrupted) {
  const pid_t child = start({"train", "--steps", "1000000", "--out", folder / "pictures", "--json"});
  for (int tenth = 0; tenth < 1200 && errors().find("step 1/") == std::string::npos; ++tenth) usleep(100'000);
  ASSERT_NE(errors().find("step 1/"), std::string::npos) << "no step in two minutes: " << errors();
  kill(child, SIGINT);
  EXPECT_EQ(finish(child), 130) << errors();
  const Json line = object();
  EXPECT_EQ(line["interrupted"], true);
  EXPECT_GE(line["steps"], 1);
  EXPECT_EQ(line["max_loss_difference"], 0.0);
  EXPECT_EQ(read_file(folder / "pictures" / "loss.png").substr(0, 4), "\x89PNG");
}

}  // namespace
