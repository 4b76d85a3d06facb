#include "annulet/report/collective_drawing.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "report/replays.hpp"

namespace annulet::report {
namespace {

using testing::HasSubstr;
using testing::Not;

CollectiveDrawing ring(int ranks, Elements elements) {
  return CollectiveDrawing(
      replays::of(schedule::Collective::all_reduce, schedule::Algorithm::ring, {0, ranks, elements}));
}

void expect_width(const std::string& text, int width) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(std::ssize(line), width) << line;
}

// The ring of the deck, worked out by hand from ring.hpp: rank r sends chunk r-k to the right in step k.
constexpr const char* kRingOfFour = R"(step 0 of 6  so far 0 B sent, 0 B by a rank; 0 ns predicted
chunk     0     1     2     3
rank 0    0...  0...  0...  0...
rank 1    .1..  .1..  .1..  .1..
rank 2    ..2.  ..2.  ..2.  ..2.
rank 3    ...3  ...3  ...3  ...3
step 1 of 6  so far 64 B sent, 16 B by a rank; 1.016 us predicted
sent  0->1: chunk 3, 1->2: chunk 0, 2->3: chunk 1, 3->0: chunk 2; 16 B each
chunk     0     1     2     3
rank 0    0...  0... >0..3  0...
rank 1    .1..  .1..  .1.. >01..
rank 2   >.12.  ..2.  ..2.  ..2.
rank 3    ...3 >..23  ...3  ...3
step 2 of 6  so far 128 B sent, 32 B by a rank; 2.032 us predicted
sent  0->1: chunk 2, 1->2: chunk 3, 2->3: chunk 0, 3->0: chunk 1; 16 B each
chunk     0     1     2     3
rank 0    0... >0.23  0..3  0...
rank 1    .1..  .1.. >01.3  01..
rank 2    .12.  ..2.  ..2. >012.
rank 3   >.123  ..23  ...3  ...3
step 3 of 6  so far 192 B sent, 48 B by a rank; 3.048 us predicted
sent  0->1: chunk 1, 1->2: chunk 2, 2->3: chunk 3, 3->0: chunk 0; 16 B each
chunk     0     1     2     3
rank 0   *0123  0.23  0..3  0...
rank 1    .1.. *0123  01.3  01..
rank 2    .12.  ..2. *0123  012.
rank 3    .123  ..23  ...3 *0123
step 4 of 6  so far 256 B sent, 64 B by a rank; 4.064 us predicted
sent  0->1: chunk 0, 1->2: chunk 1, 2->3: chunk 2, 3->0: chunk 3; 16 B each
chunk     0     1     2     3
rank 0   =0123  0.23  0..3 *0123
rank 1   *0123 =0123  01.3  01..
rank 2    .12. *0123 =0123  012.
rank 3    .123  ..23 *0123 =0123
step 5 of 6  so far 320 B sent, 80 B by a rank; 5.08 us predicted
sent  0->1: chunk 3, 1->2: chunk 0, 2->3: chunk 1, 3->0: chunk 2; 16 B each
chunk     0     1     2     3
rank 0   =0123  0.23 *0123 =0123
rank 1   =0123 =0123  01.3 *0123
rank 2   *0123 =0123 =0123  012.
rank 3    .123 *0123 =0123 =0123
step 6 of 6  so far 384 B sent, 96 B by a rank; 6.096 us predicted
sent  0->1: chunk 2, 1->2: chunk 3, 2->3: chunk 0, 3->0: chunk 1; 16 B each
chunk     0     1     2     3
rank 0   =0123 *0123 =0123 =0123
rank 1   =0123 =0123 *0123 =0123
rank 2   =0123 =0123 =0123 *0123
rank 3   *0123 =0123 =0123 =0123
)";

TEST(CollectiveDrawing, OfARingOfFour) {
  const CollectiveDrawing drawing = ring(4, 16);
  std::string all;
  for (int k = 0; k <= 6; ++k) all += drawing.round(k, {.width = 80});
  EXPECT_EQ(all, kRingOfFour);
}

TEST(CollectiveDrawing, SaysHowManyContributeWhereThereIsNoRoomForWho) {
  EXPECT_THAT(ring(8, 16).round(3, {.width = 120}), HasSubstr(">0....567"));
  EXPECT_THAT(ring(8, 16).round(3, {.width = 80}), HasSubstr(">4/8"));
  for (const int width : {40, 60, 80}) {
    for (const int ranks : {1, 3, 8, 16}) {
      const CollectiveDrawing drawing = ring(ranks, 40);
      for (int k = 0; k <= drawing.replay().rounds(); ++k) expect_width(drawing.round(k, {.width = width}), width);
      expect_width(drawing.legend({.width = width}), width);
    }
  }
}

TEST(CollectiveDrawing, ColoursWhatWasReceivedAndWhatIsFinished) {
  const CollectiveDrawing drawing = ring(4, 16);
  EXPECT_THAT(drawing.round(1, {.width = 80, .colour = Colour::ansi}), HasSubstr("\x1b[38;5;208m>0..3\x1b[0m"));
  EXPECT_THAT(drawing.round(3, {.width = 80, .colour = Colour::ansi}), HasSubstr("\x1b[38;5;208m*\x1b[32m0123\x1b[0m"));
  EXPECT_THAT(drawing.round(4, {.width = 80, .colour = Colour::ansi}), HasSubstr("\x1b[32m=\x1b[32m0123\x1b[0m"));
  EXPECT_THAT(drawing.round(4, {.width = 80}), Not(HasSubstr("\x1b")));
}

TEST(CollectiveDrawing, ShowsAsManyValuesAsThereIsRoomFor) {
  Replay replay = replays::of(schedule::Collective::all_reduce, schedule::Algorithm::ring, {0, 2, 8});
  ReplayValues values(replay.frames.size(), {{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40, 50, 60, 70, 0.125678}});
  const CollectiveDrawing drawing(std::move(replay), std::move(values));
  EXPECT_THAT(drawing.round(0, {.width = 90}), HasSubstr("50    60    70    0.126"));
  EXPECT_THAT(drawing.round(0, {.width = 50}), HasSubstr("50    60    .."));
}

TEST(CollectiveDrawing, NamesElementsWhereMessagesAreNotChunks) {
  const auto replay = replays::of(schedule::Collective::all_reduce, schedule::Algorithm::pipelined_tree, {0, 3, 10, 4});
  EXPECT_THAT(CollectiveDrawing(replay).round(1, {.width = 80}), HasSubstr("1->0: elements 0-3"));
  EXPECT_THAT(CollectiveDrawing(replay).round(1, {.width = 80}), HasSubstr("element   0-3"));
}

TEST(CollectiveDrawing, LeavesOutMessagesOfWhichThereAreMany) {
  const CollectiveDrawing drawing(
      replays::of(schedule::Collective::all_reduce, schedule::Algorithm::direct, {0, 16, 32}));
  EXPECT_THAT(drawing.round(1, {.width = 80}), HasSubstr("... 240 messages in all; 8 B each"));
}

}  // namespace
}  // namespace annulet::report
