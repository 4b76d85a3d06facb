#include "annulet/report/trace.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "annulet/base/error.hpp"
#include "base/temporary_folder.hpp"

namespace annulet::report {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

Json content(const std::filesystem::path& file) { return Json::parse(test::content_of(file)); }

// What a kill leaves behind is what the last flush did.
TEST(TraceFile, IsWholeAfterEveryFlush) {
  const test::TemporaryFolder folder;
  folder.write("trace.json", "an older one");
  TraceFile file(folder / "trace.json");
  EXPECT_EQ(test::content_of(folder / "trace.json"), "an older one");  // this run may yet be refused
  EXPECT_THROW(file.append("{}", ""), ContractError);
  EXPECT_THROW(file.events(), ContractError);
  file.begin();
  EXPECT_EQ(content(folder / "trace.json")["traceEvents"].size(), 0U);
  for (std::size_t flush = 1; flush <= 5; ++flush) {
    file.append(fmt::format("{{\"a\":{}}},\n{{\"b\":1}}", flush), fmt::format("{} steps", flush));
    const Json json = content(folder / "trace.json");
    EXPECT_EQ(json["traceEvents"].size(), 2 * flush);
    EXPECT_EQ(json["traceEvents"][2 * flush - 2]["a"], flush);
    EXPECT_EQ(json["otherData"]["steps"], fmt::format("{} steps", flush));
  }
  EXPECT_THAT([&] { TraceFile(folder / "none/trace.json"); },
              ::testing::ThrowsMessage<InputError>(HasSubstr("cannot be written")));
}

train::TracedStep step_at(Instant began, long number) {
  train::TracedStep step;
  step.began = began, step.backward_ended = began + milliseconds(6);
  step.record.step = number;
  auto& s = step.record.seconds;
  s.data = Seconds(1e-3), s.forward = Seconds(2e-3), s.backward = Seconds(3e-3), s.exposed = Seconds(2e-3);
  s.control = Seconds(1e-3), s.optimizer = Seconds(1e-3), s.total = Seconds(9e-3);
  const auto bucket = [&](int start, int end) {
    return parallel::BucketTimes{began, began + milliseconds(start), began + milliseconds(end)};
  };
  step.buckets = {bucket(3, 5), bucket(4, 6), bucket(5, 7)};
  return step;
}

TEST(Trace, HoldsEveryRankOnOneClockAtTheEnd) {
  const test::TemporaryFolder folder;
  const Instant origin = Clock::now();
  std::vector<std::string> events;
  Trace first(folder / "trace.json", 0), second(folder / "trace.json", 1);
  for (int rank = 0; rank < 2; ++rank) {
    Trace& trace = rank == 0 ? first : second;
    trace.begin(rank, 2, {origin, Seconds(rank)});  // rank 1's clock is a second ahead
    trace.step(step_at(origin + std::chrono::seconds(rank) + milliseconds(10), 4));
    events.push_back(trace.events());
  }
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"trace.json", "trace.json.rank1"}));
  first.keep(events), second.discard();
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"trace.json"}));

  const Json json = content(folder / "trace.json");
  int buckets = 0, forward = 0, communication = 0;
  for (const Json& event : json["traceEvents"]) {
    const std::string name = event["name"];
    if (name == "thread_name") communication += event["args"]["name"] == "communication";
    if (name == "forward") {
      ++forward;
      EXPECT_NEAR(event["ts"].get<double>(), 11e3, 1);
      EXPECT_NEAR(event["dur"].get<double>(), 2e3, 1);
      EXPECT_EQ(event["args"]["step"], 4);
    }
    if (!name.starts_with("bucket")) continue;
    ++buckets;
    EXPECT_EQ(event["tid"], name == "bucket 2" ? 2 : 1);  // overlaps with the first; the third does not
  }
  EXPECT_EQ(forward, 2);
  EXPECT_EQ(buckets, 6);
  EXPECT_EQ(communication, 2);
}

TEST(Trace, EndsAtItsLimitAndSaysSo) {
  const test::TemporaryFolder folder;
  Trace trace(folder / "trace.json", 0);
  trace.begin(0, 1 << 14, {Clock::now(), Seconds(0)});  // 16 KiB a rank
  for (long step = 0; step < 100; ++step) trace.step(step_at(Clock::now(), step));
  trace.events();
  const std::string note = content(folder / "trace.json")["otherData"]["steps"];
  EXPECT_THAT(note, HasSubstr("and no more: 16.38 kB were reached"));
  EXPECT_LT(std::filesystem::file_size(folder / "trace.json"), 18'000U);
}

}  // namespace
}  // namespace annulet::report
