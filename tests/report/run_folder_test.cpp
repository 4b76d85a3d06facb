#include "annulet/report/run_folder.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"
#include "report/example.hpp"

namespace annulet::report {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Json = nlohmann::json;

TEST(RunFolder, HoldsConfigStepsBucketsAndSummary) {
  const test::TemporaryFolder folder;
  {
    RunFolder run(folder / "run", Existing::refuse);
    train::RunInfo info;
    info.config_toml = "steps = 1\n";
    run.begin(info);
    run.step(example::steps()[0]);
    run.end(example::summary(), example::buckets(), example::steps());
  }
  EXPECT_EQ(test::content_of(folder / "run/config.toml"), "steps = 1\n");
  const Json step = Json::parse(test::content_of(folder / "run/steps.jsonl"));
  EXPECT_EQ(step["step"], 3);
  EXPECT_EQ(step["wire_bytes"], 4000);
  EXPECT_EQ(step["backward_seconds"], 0.004);
  const std::string lines = test::content_of(folder / "run/buckets.jsonl");
  const Json bucket = Json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(bucket["measured_seconds"], 0.002);
  EXPECT_EQ(bucket["waiting_seconds"], 0.0004);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_EQ(Json::parse(test::content_of(folder / "run/summary.json"))["eval"]["accuracy"], 0.875);
}

TEST(RunFolder, RefusesToLoseAnOlderRunUnlessTold) {
  const test::TemporaryFolder folder;
  folder.write("weights.safetensors", "precious");
  EXPECT_THAT([&] { RunFolder(folder / "", Existing::refuse); },
              ThrowsMessage<InputError>(HasSubstr("pass --overwrite")));
  EXPECT_EQ(test::content_of(folder / "weights.safetensors"), "precious");
  RunFolder replaced(folder / "", Existing::replace);
  EXPECT_EQ(test::content_of(folder / "weights.safetensors"), "precious");  // this run may yet be refused
  replaced.begin({});
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"config.toml", "steps.jsonl"}));
}

TEST(RunFolder, SaysWhyAFolderCannotBeMade) {
  const test::TemporaryFolder folder;
  folder.write("file", "");
  EXPECT_THAT([&] { RunFolder(folder / "file/run", Existing::refuse); },
              ThrowsMessage<InputError>(HasSubstr("cannot be made")));
}

TEST(Summary, HasEveryNameAndNullWhereAValueIsUnknown) {
  const Json known = Json::parse(summary_json(example::summary())), unknown = Json::parse(summary_json({}));
  for (const char* name : {"version",
                           "build",
                           "seed",
                           "ranks",
                           "driver",
                           "algorithm",
                           "parameters",
                           "steps",
                           "global_batch",
                           "bucket_bytes",
                           "train_loss",
                           "eval",
                           "median_step_seconds",
                           "median_forward_seconds",
                           "samples_per_second",
                           "median_exposed_seconds",
                           "median_skew_seconds",
                           "hidden_fraction",
                           "wire_bytes_per_step",
                           "planned_wire_bytes_per_step",
                           "wire_bytes_by_rank",
                           "control_bytes_per_step",
                           "all_reduce",
                           "flops_per_step",
                           "peak_flops",
                           "gemm_flops",
                           "mfu",
                           "hfu",
                           "median_exposed_by_collective",
                           "memory",
                           "peak_rss_bytes",
                           "peak_rss_bytes_by_rank",
                           "link"}) {
    EXPECT_TRUE(known.contains(name) && !known[name].is_null()) << name;
    EXPECT_TRUE(unknown.contains(name)) << name;
  }
  for (const char* name : {"train_loss", "median_step_seconds", "hidden_fraction", "mfu"})
    EXPECT_TRUE(unknown[name].is_null()) << name;
  EXPECT_TRUE(unknown["eval"]["accuracy"].is_null());
  EXPECT_EQ(known["all_reduce"]["predicted_seconds"], 0.005);
  EXPECT_EQ(known["memory"]["optimiser_state"]["bytes_by_rank"], (std::vector<int>{2000, 1000}));
  EXPECT_EQ(known["memory"]["weights"]["planned_bytes_by_rank"][1], 4000);
  EXPECT_EQ(known["median_exposed_by_collective"]["all_reduce_seconds"], 0.0008);
}

}  // namespace
}  // namespace annulet::report
