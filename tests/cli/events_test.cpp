// TANDEM_TRACE, `tandem trace` and what TANDEM_LOGS prints of code that the cache had.
#include "cli/cache_folder.h"
#include "native/code.h"

namespace {

struct CliEvents : CliCache {
  fs::path file;

  void SetUp() override {
    CliCache::SetUp();
    file = folder / "events.jsonl";
    setenv("TANDEM_TRACE", file.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TANDEM_TRACE");
    unsetenv("TANDEM_LOGS");
    CliCache::TearDown();
  }

  std::vector<Json> events(const std::string& kind) const {
    std::vector<Json> found;
    std::istringstream text(read_file(file));
    for (std::string line; std::getline(text, line);)
      if (Json event = Json::parse(line); event["event"] == kind) found.push_back(event);
    return found;
  }
  /// What is logged of one compile, without times.
  std::string logged(const std::string& topics) {
    setenv("TANDEM_LOGS", topics.c_str(), 1);
    compile();
    unsetenv("TANDEM_LOGS");
    std::string text;
    std::istringstream lines(errors());
    for (std::string line; std::getline(lines, line);)
      text += line.substr(line.starts_with("[tandem ") ? line.find(']') + 1 : 0) + "\n";
    return text;
  }
};

TEST_F(CliEvents, AMissThenAHit) {
  const std::string key = compile();
  ASSERT_EQ(compile(), key);
  const auto compiles = events("compile");
  ASSERT_EQ(compiles.size(), 2u);
  for (const Json& event : compiles) {
    EXPECT_EQ(event["key"], key);
    EXPECT_EQ(event["mode"], "training");
    EXPECT_EQ(event["backend"], "eager");
    EXPECT_EQ(event["unexpected"], false);
    EXPECT_EQ(event["asked"], Json::array({"local"}));
    EXPECT_NE(event["components"]["trace"]["text"], "");
    EXPECT_TRUE(event["bypass_reason"].is_null());
    EXPECT_EQ(event["wrappers"], compiles[0]["wrappers"]);
    EXPECT_GT(event["wrappers"].size(), 0u);
    EXPECT_EQ(event["components"], compiles[0]["components"]);
    EXPECT_TRUE(event["components"].contains("trace"));
    EXPECT_GT(event["seconds"], event["trace_s"]);
  }
  EXPECT_EQ(compiles[0]["state"], "miss");
  EXPECT_GT(compiles[0]["joint_s"], 0);
  EXPECT_GT(compiles[0]["forward_compile_s"], 0);
  EXPECT_EQ(compiles[1]["state"], "hit");
  EXPECT_EQ(compiles[1]["level"], "local");
  EXPECT_EQ(compiles[1]["joint_s"], 0);
  EXPECT_EQ(compiles[1]["joint_saved_s"], compiles[0]["joint_s"]);
  EXPECT_EQ(compiles[1]["forward_saved_s"], compiles[0]["forward_compile_s"]);
  const auto saved = events("saved");
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0]["entry_bytes"], compiles[1]["entry_bytes"]);
  EXPECT_EQ(saved[0]["artifact_bytes"], compiles[1]["artifact_bytes"]);
  EXPECT_EQ(events("backward").size(), 1u) << "a hit compiles none";
}

TEST_F(CliEvents, TroubleOfTheCacheIsABypassThatNobodyExpected) {
  std::ofstream(directory) << "no folder";
  compile();
  ASSERT_GE(events("bypass").size(), 1u);
  EXPECT_EQ(events("bypass")[0]["unexpected"], true);
  EXPECT_EQ(events("compile")[0]["state"], "bypass");
  EXPECT_EQ(events("compile")[0]["unexpected"], true);
}

TEST_F(CliEvents, ADamagedEntry) {
  const std::string key = compile();
  damage(CliCache::file("entries", key));
  compile();
  ASSERT_EQ(events("damaged").size(), 1u);
  EXPECT_EQ(events("damaged")[0]["key"], key);
}

TEST_F(CliEvents, ChromeTrace) {
  compile();
  const fs::path chrome = folder / "chrome.json";
  ASSERT_EQ(run({"trace", file, "-o", chrome}), 0) << errors();
  const Json shown = Json::parse(read_file(chrome))["traceEvents"];
  std::set<std::string> names;
  for (const Json& one : shown) {
    names.insert(one["name"]);
    EXPECT_TRUE(one["ph"] == "i" || one["dur"] > 0) << one;
    EXPECT_GT(one["ts"], 1e15) << "microseconds since 1970";
    EXPECT_FALSE(one["args"].contains("components"));
    EXPECT_FALSE(one["args"].contains("text"));
  }
  for (const char* name :
       {"compile (miss)", "trace", "differentiate", "compile forward", "backward", "saved"})
    EXPECT_TRUE(names.contains(name)) << name;
  const std::string whole = read_file(file);
  std::ofstream(file, std::ios::app) << "{\"event\": \"half";
  EXPECT_EQ(run({"trace", file}), 0) << errors();
  std::ofstream(file, std::ios::app) << "\n";
  EXPECT_EQ(run({"trace", file}), 1);
  const auto lines = std::count(whole.begin(), whole.end(), '\n');
  EXPECT_NE(errors().find("line " + std::to_string(lines + 1) + " is no event"), std::string::npos)
      << errors();
}

/// What it has seen of each graph, and of the contract, by what they are.
std::map<std::string, std::string> texts(const std::vector<Json>& graphs) {
  std::map<std::string, std::string> found;
  for (const Json& graph : graphs) found[graph["what"]] = graph["text"];
  return found;
}

TEST_F(CliEvents, GraphsAndContractAreSeenOfAHitAsOfAMiss) {
  compile();
  const auto missed = texts(events("graph"));
  fs::remove(file);
  compile();
  ASSERT_EQ(events("compile")[0]["state"], "hit");
  EXPECT_EQ(texts(events("graph")), missed);
  for (const char* what : {"trace", "joint", "forward", "backward", "contract"})
    EXPECT_TRUE(missed.contains(what)) << what;
  EXPECT_NE(missed.at("backward").find("aten::"), std::string::npos);
}

TEST_F(CliEvents, AFolderOfDumps) {
  const fs::path dumps = folder / "dumps";
  fs::create_directory(dumps);
  setenv("TANDEM_DUMP", dumps.c_str(), 1);
  compile();
  std::map<std::string, std::string> dumped;
  for (const auto& one : fs::directory_iterator(dumps)) dumped[one.path().filename()] = read_file(one.path());
  const auto seen = texts(events("graph"));
  ASSERT_EQ(dumped.size(), seen.size());
  for (const auto& [what, text] : seen) {
    const auto same = std::find_if(dumped.begin(), dumped.end(), [&, what = what](const auto& one) {
      return one.first.ends_with(".signature-0." + what + ".txt");
    });
    ASSERT_NE(same, dumped.end()) << what;
    EXPECT_EQ(same->second, text);
  }
  setenv("TANDEM_DUMP", (folder / "nowhere").c_str(), 1);
  compile();
  unsetenv("TANDEM_DUMP");
  EXPECT_NE(errors().find("TANDEM_DUMP: "), std::string::npos) << errors();
}

TEST_F(CliEvents, AFolderOfDumpsHasTheKernelsOfFuse) {
  if (!tandem::native::can_compile()) GTEST_SKIP() << "there is no LLVM";
  const fs::path dumps = folder / "dumps";
  setenv("TANDEM_DUMP", dumps.c_str(), 1);
  for (const char* state : {"miss", "hit"}) {
    fs::create_directory(dumps);
    ASSERT_EQ(run({"explain", folder / "script.pt", "--input", "2x3:f32", "--backend", "fuse", "--json"}), 0)
        << errors();
    ASSERT_EQ(object()["cache_state"], state);
    std::map<std::string, std::string> dumped;  // by what comes behind the signature
    for (const auto& one : fs::directory_iterator(dumps)) {
      const std::string name = one.path().filename();
      dumped[name.substr(name.find(".signature-0.") + 13)] = read_file(one.path());
    }
    for (const std::string half : {"forward", "backward"}) {
      const std::string loops = dumped[half + ".kernel-0.loops.txt"];
      EXPECT_NE(loops, "") << half;
      EXPECT_NE(dumped[half + ".groups.txt"].find(loops), std::string::npos) << "where it is launched";
      EXPECT_NE(dumped[half + ".kernel-0.ll"].find("@tandem_kernel("), std::string::npos) << half;
      EXPECT_NE(dumped[half + ".kernel-0.s"].find("\ntandem_kernel:"), std::string::npos) << half;
    }
    fs::remove_all(dumps);
  }
  unsetenv("TANDEM_DUMP");
}

TEST_F(CliEvents, WhyReadsKeysFromAFileOfEvents) {
  const std::string first = compile("2x3:f32"), second = compile("4x3:f32");
  fs::remove_all(directory);
  ASSERT_EQ(run({"why", first.substr(0, 12), second, "--trace", file, "--json"}), 0) << errors();
  EXPECT_EQ(object()["first"], first);
  EXPECT_EQ(object()["differing"], (Json{"inputs", "trace"}));
  EXPECT_EQ(run({"why", first, second}), 1) << "they are nowhere else";
}

TEST_F(CliEvents, AFileThatCannotBeWrittenIsWarnedOf) {
  setenv("TANDEM_TRACE", folder.c_str(), 1);
  compile();
  EXPECT_NE(errors().find("TANDEM_TRACE"), std::string::npos) << errors();
}

TEST_F(CliEvents, NothingOfWhatTensorsHoldIsInIt) {
  torch::jit::Module script("Script");
  script.register_parameter("weight", at::full({3}, 123456.0).requires_grad_(), /*is_buffer=*/false);
  script.define("def forward(self, x):\n  return (x * self.weight + torch.tensor([654321.0])).tanh()\n");
  script.save(folder / "script.pt");
  compile();
  EXPECT_NE(read_file(file).find("aten::tanh"), std::string::npos);
  for (const char* number : {"123456", "654321"})
    EXPECT_EQ(read_file(file).find(number), std::string::npos) << number;
}

TEST_F(CliEvents, GraphsAndContractArePrintedOfAHitAsOfAMiss) {
  const std::string topics = "joint,graphs,contract", miss = logged(topics), hit = logged(topics);
  for (const char* part : {"contract:", "joint:", "graphs:  forward", "graphs:  backward"})
    EXPECT_NE(miss.find(part), std::string::npos) << part;
  EXPECT_EQ(hit, miss);
  EXPECT_EQ(events("compile")[1]["state"], "hit");
}

TEST_F(CliEvents, ComponentsAreDetails) {
  const std::string some = logged("cache");
  EXPECT_NE(some.find(" miss "), std::string::npos) << some;
  EXPECT_NE(some.find(" saved "), std::string::npos) << some;
  EXPECT_EQ(some.find("trace: "), std::string::npos) << some;
  const std::string all = logged("cache,debug");
  EXPECT_NE(all.find(" hit "), std::string::npos) << all;
  EXPECT_NE(all.find("trace: "), std::string::npos) << all;
}

}  // namespace
