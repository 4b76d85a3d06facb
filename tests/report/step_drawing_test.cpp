#include "annulet/report/step_drawing.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <sstream>

namespace annulet::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 56 columns for 56 ms: a column is a millisecond.
train::ShownStep example() {
  train::ShownStep step;
  step.record.step = 7;
  auto& s = step.record.seconds;
  s.data = Seconds(1e-3), s.forward = Seconds(9e-3), s.backward = Seconds(20e-3);
  s.exposed = Seconds(16e-3), s.control = Seconds(2e-3), s.optimizer = Seconds(10e-3), s.total = Seconds(56e-3);
  train::BucketRecord bucket;
  bucket.ready = Seconds(20e-3), bucket.start = Seconds(24e-3), bucket.end = Seconds(44e-3);
  bucket.predicted = Seconds(10e-3);
  step.buckets = {bucket};
  return step;
}

std::vector<std::string> lines(const std::string& text, const std::string& label) {
  std::vector<std::string> found;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) {
    if (line.starts_with(label)) found.push_back(line);
  }
  return found;
}

TEST(StepDrawing, PutsMeasuredAndPredictedBarsOnOneScale) {
  const std::string text = draw_step(example(), {.width = 80});
  const auto bucket = lines(text, "bucket 1"), exposed = lines(text, "exposed"), end = lines(text, "optimiser");
  ASSERT_EQ(bucket.size(), 2U);
  const auto bar = [](int from, char symbol, int count) {
    return std::string(static_cast<std::size_t>(from), ' ') + std::string(static_cast<std::size_t>(count), symbol);
  };
  EXPECT_THAT(bucket[0], HasSubstr("   " + bar(20, '.', 4) + bar(0, '=', 20) + " "));
  EXPECT_THAT(bucket[1], HasSubstr("   " + bar(20, '.', 4) + bar(0, '=', 10) + " "));
  EXPECT_THAT(exposed[0], HasSubstr(bar(30, 'x', 14) + "cc"));
  EXPECT_THAT(exposed[1], HasSubstr(bar(30, 'x', 4) + "cc"));
  EXPECT_THAT(end[1], HasSubstr(bar(36, '#', 10)));
  EXPECT_THAT(text, HasSubstr("measured +21.7 %"));  // 56 of 46 ms
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(StepDrawing, FitsTheWidthAndLeavesOutTheMiddleOfManyBuckets) {
  train::ShownStep step = example();
  step.buckets.resize(40, step.buckets.front());
  for (const int width : {60, 80, 132}) {
    for (const auto& line : lines(draw_step(step, {.width = width}), "bucket")) {
      EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
    }
  }
  const std::string text = draw_step(step, {.width = 80});
  EXPECT_EQ(lines(text, "bucket").size(), 32U);
  EXPECT_THAT(text, HasSubstr("... 24 more buckets ..."));
}

TEST(StepDrawing, TakesThePredictionOfAProfileIfThereIsOneAndColoursTerminals) {
  train::ShownStep step = example();
  step.prediction = cost::StepPrediction{};
  step.prediction->step = Seconds(28e-3);
  const std::string text = draw_step(step, {.width = 80, .colour = Colour::ansi});
  EXPECT_THAT(text, HasSubstr("from the profile: 28.000 ms, measured +100.0 %"));
  EXPECT_THAT(text, HasSubstr("\x1b[34m===="));
}

}  // namespace
}  // namespace annulet::report
