// `tandem cache` and `tandem why`.
#include "cache/local_store.h"
#include "cli/cache_folder.h"

namespace {

TEST_F(CliCache, AnAbsentFolderIsAnEmptyCache) {
  EXPECT_EQ(run({"cache", "ls", "--json"}), 0) << errors();
  EXPECT_EQ(output(), "");
  EXPECT_EQ(run({"cache", "stats", "--json"}), 0) << errors();
  EXPECT_EQ(object()["entries"], 0);
  EXPECT_EQ(run({"cache", "verify"}), 0) << errors();
  EXPECT_EQ(run({"cache", "gc", "--json"}), 0) << errors();
  EXPECT_EQ(run({"cache", "clear", "--json"}), 0) << errors();
  EXPECT_EQ(object()["removed"], 0);
  EXPECT_FALSE(fs::exists(directory));
}

TEST_F(CliCache, LsListsWhatWasCompiled) {
  const std::string first = compile("2x3:f32"), second = compile("4x3:f32");
  ASSERT_EQ(run({"cache", "ls", "--json"}), 0) << errors();
  const std::vector<Json> found = lines();
  ASSERT_EQ(found.size(), 2u) << output();
  EXPECT_EQ(found[0]["key"], second) << "the last used comes first";
  EXPECT_EQ(found[1]["key"], first);
  for (Json line : found) {
    EXPECT_EQ(line["backend"], "eager");
    EXPECT_EQ(line["artifacts"], 2);
    EXPECT_GT(line["bytes"], 0);
    EXPECT_GT(line["nodes"], 0);
    EXPECT_GT(line["saves_s"], 0.0);
    EXPECT_TRUE(line["damage"].is_null());
  }
  ASSERT_EQ(run({"cache", "ls"}), 0) << errors();
  EXPECT_NE(output().find(first.substr(0, 16)), std::string::npos) << output();
  ASSERT_EQ(run({"cache", "ls", "--json", "--directory", folder / "elsewhere"}), 0) << errors();
  EXPECT_EQ(output(), "");
}

TEST_F(CliCache, ShowPrintsOneEntry) {
  const std::string key = compile();
  ASSERT_EQ(run({"cache", "show", key.substr(0, 10), "--json"}), 0) << errors();
  Json line = object();
  EXPECT_EQ(line["key"], key);
  EXPECT_EQ(line["components"]["trace"].get<std::string>().size(), 64u);
  EXPECT_EQ(line["backend"], "eager");
  EXPECT_NE(line["contract"].get<std::string>().find("'x'"), std::string::npos) << line["contract"];
  EXPECT_NE(line["options"].get<std::string>().find("eager"), std::string::npos) << line["options"];
  EXPECT_EQ(line["artifacts"].size(), 2u);
  for (const Json& artifact : line["artifacts"])
    EXPECT_EQ(artifact["bytes"], fs::file_size(file("artifacts", artifact["name"])));
  EXPECT_DOUBLE_EQ(line["saves_s"], line["trace_s"].get<double>() + line["compile_forward_s"].get<double>() +
                                        line["compile_backward_s"].get<double>());
  EXPECT_FALSE(line.contains("graphs"));
  ASSERT_EQ(run({"cache", "show", key, "--graphs", "--json"}), 0) << errors();
  line = object();
  EXPECT_NE(line["graphs"]["forward"].get<std::string>().find("aten::tanh"), std::string::npos);
  EXPECT_NE(line["graphs"]["backward 0"].get<std::string>().find("aten::tanh_backward"), std::string::npos);
  ASSERT_EQ(run({"cache", "show", key, "--graphs"}), 0) << errors();
  for (const char* part : {"trace: ", "aten::tanh_backward", "a hit saves"})
    EXPECT_NE(output().find(part), std::string::npos) << part;
}

TEST_F(CliCache, ShowNeedsABeginningThatOneKeyHas) {
  compile("2x3:f32");
  compile("4x3:f32");
  EXPECT_EQ(run({"cache", "show", "xyz"}), 1);
  EXPECT_NE(errors().find("xyz"), std::string::npos) << errors();
  EXPECT_EQ(run({"cache", "show", ""}), 1);
  EXPECT_NE(errors().find("2 entries"), std::string::npos) << errors();
}

TEST_F(CliCache, VerifyFindsDamage) {
  const std::string key = compile();
  EXPECT_EQ(run({"cache", "verify", "--json"}), 0) << errors();
  EXPECT_EQ(output(), "");
  damage(file("entries", key));
  EXPECT_EQ(run({"cache", "verify", "--json"}), 1);
  EXPECT_EQ(object()["kind"], "entry");
  EXPECT_EQ(object()["name"], key);
  EXPECT_EQ(run({"cache", "verify"}), 1);
  EXPECT_NE(output().find(key), std::string::npos) << output();
  ASSERT_EQ(run({"cache", "ls", "--json"}), 0) << errors();
  EXPECT_TRUE(object()["damage"].is_string());
  EXPECT_EQ(run({"cache", "show", key}), 1);
  EXPECT_NE(errors().find(key), std::string::npos) << errors();
  EXPECT_TRUE(fs::exists(file("entries", key))) << "who looks removes nothing";
}

TEST_F(CliCache, VerifyLooksIntoWholeFiles) {
  tandem::cache::LocalStore store(directory, "", 1 << 20);
  const std::string name(64, 'a');
  store.put(tandem::cache::Kind::Entry, name, "no entry");
  store.put(tandem::cache::Kind::Artifact, name, "code of another name");
  EXPECT_EQ(run({"cache", "verify", "--json"}), 1);
  EXPECT_EQ(lines().size(), 2u) << output();
}

TEST_F(CliCache, VerifyFindsWhatTheKeyDidNotSign) {
  compile("2x3:f32");
  compile("4x3:f32");
  setenv("TANDEM_CACHE_KEY", "somebody's", 1);
  EXPECT_EQ(run({"cache", "verify", "--json"}), 1);
  unsetenv("TANDEM_CACHE_KEY");
  EXPECT_EQ(lines().size(), 6u) << "two entries and four artifacts without a signature";
  EXPECT_EQ(run({"cache", "verify", "--json"}), 0);
}

TEST_F(CliCache, ClearRemovesAllAndTheNextCompileMisses) {
  compile();
  ASSERT_EQ(run({"explain", folder / "script.pt", "--input", "2x3:f32", "--json"}), 0) << errors();
  EXPECT_EQ(object()["cache_state"], "hit");
  ASSERT_EQ(run({"cache", "clear", "--json"}), 0) << errors();
  EXPECT_EQ(object()["removed"], 3);
  ASSERT_EQ(run({"cache", "stats", "--json"}), 0) << errors();
  EXPECT_EQ(object()["bytes"], 0);
  ASSERT_EQ(run({"explain", folder / "script.pt", "--input", "2x3:f32", "--json"}), 0) << errors();
  EXPECT_EQ(object()["cache_state"], "miss");
}

TEST_F(CliCache, GcKeepsWhatEntriesName) {
  compile("2x3:f32");
  const std::string dropped = compile("4x3:f32");
  ASSERT_TRUE(fs::remove(file("entries", dropped)));
  ASSERT_EQ(run({"cache", "gc", "--json"}), 0) << errors();
  EXPECT_EQ(object()["unneeded"], 0) << "what was just used may be about to be named";
  for (const fs::path& one : tandem::test::files_below(directory))
    fs::last_write_time(one, fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_EQ(run({"cache", "gc", "--json"}), 0) << errors();
  EXPECT_EQ(object()["unneeded"], 2);
  ASSERT_EQ(run({"explain", folder / "script.pt", "--input", "2x3:f32", "--json"}), 0) << errors();
  EXPECT_EQ(object()["cache_state"], "hit");
  ASSERT_EQ(run({"cache", "gc", "--max-bytes", "0", "--json"}), 0) << errors();
  EXPECT_EQ(object()["evicted"], 3);
}

TEST_F(CliCache, ABundleTravels) {
  const std::string key = compile("2x3:f32");
  compile("4x3:f32");
  ASSERT_EQ(run({"cache", "export", folder / "one", key.substr(0, 12), "--json"}), 0) << errors();
  EXPECT_EQ(object()["entries"], 1);
  ASSERT_EQ(run({"cache", "export", folder / "all", "--json"}), 0) << errors();
  EXPECT_EQ(object()["entries"], 2);
  EXPECT_EQ(object()["artifacts"], 4);
  setenv("TANDEM_CACHE_DIR", (folder / "new").c_str(), 1);
  ASSERT_EQ(run({"cache", "import", folder / "one", "--json"}), 0) << errors();
  EXPECT_EQ(object()["entries"], 1);
  ASSERT_EQ(run({"explain", folder / "script.pt", "--input", "2x3:f32", "--json"}), 0) << errors();
  EXPECT_EQ(object()["cache_state"], "hit");
  damage(folder / "all");
  EXPECT_EQ(run({"cache", "import", folder / "all"}), 1);
  EXPECT_NE(errors().find("all"), std::string::npos) << errors();
  ASSERT_EQ(run({"cache", "stats", "--json"}), 0) << errors();
  EXPECT_EQ(object()["entries"], 1);
}

TEST_F(CliCache, WhyNamesTheFirstDifference) {
  const std::string first = compile("2x3:f32"), second = compile("4x3:f32");
  ASSERT_EQ(run({"why", first.substr(0, 12), second, "--json"}), 0) << errors();
  const Json line = object();
  const auto differing = line["differing"].get<std::vector<std::string>>();
  EXPECT_NE(std::find(differing.begin(), differing.end(), "inputs"), differing.end()) << line;
  EXPECT_EQ(std::find(differing.begin(), differing.end(), "options"), differing.end()) << line;
  ASSERT_EQ(run({"why", first, second}), 0) << errors();
  EXPECT_NE(output().find("inputs differs at line 1"), std::string::npos) << output();
  ASSERT_EQ(run({"why", first, first}), 0) << errors();
  EXPECT_EQ(output(), "The two keys are the same.\n");
}

TEST_F(CliCache, TrainSaysWhetherItHit) {
  ASSERT_EQ(run({"train", "--steps", "1", "--out", folder / "pictures", "--json"}), 0) << errors();
  EXPECT_EQ(object()["cache_state"], "miss");
  EXPECT_EQ(object()["cache_saved_s"], 0.0);
  ASSERT_EQ(run({"train", "--steps", "1", "--out", folder / "pictures", "--json"}), 0) << errors();
  EXPECT_EQ(object()["cache_state"], "hit");
  EXPECT_GT(object()["cache_saved_s"], 0.0);
  EXPECT_EQ(object()["max_loss_difference"], 0.0);
  ASSERT_EQ(run({"train", "--steps", "1", "--out", folder / "pictures"}), 0) << errors();
  EXPECT_NE(output().find("hit, saved "), std::string::npos) << output();
}

}  // namespace
