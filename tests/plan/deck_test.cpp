#include "annulet/plan/deck.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "plan/answers.hpp"

namespace annulet::plan {
namespace {

using testing::ElementsAre;

// configs/ is found from the current folder.
class DeckTest : public testing::Test {
 protected:
  DeckTest() { std::filesystem::current_path(ANNULET_SOURCE); }
  ~DeckTest() override { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

TEST_F(DeckTest, EveryFigureComesOut) {
  const std::vector<Figure> figures = deck_figures();
  EXPECT_EQ(figures.size(), 3U + 2 * 8 + 2 * 20 + 4 + 12 + 3);
  for (const Figure& f : figures) EXPECT_EQ(f.ours, f.published) << f.section << ": " << f.what;
}

TEST_F(DeckTest, AnswersThatAllAgree) {
  const Answer answer = plan_deck();
  EXPECT_TRUE(answer.holds);
  EXPECT_THAT(answer.notes, ElementsAre("all 78 figures come out"));
  EXPECT_EQ(cell_of(table_of(answer, "deck"), {"3 step", "waiting, MFU"}, "ours").shown, "35.7 %");
}

TEST_F(DeckTest, DoesNotHoldIfOneDiffers) {
  std::vector<Figure> figures = deck_figures();
  figures[5].ours = "52.6 ms";
  EXPECT_FALSE(figures[5].agrees());
  const Answer answer = plan_deck(figures);
  EXPECT_FALSE(answer.holds);
  EXPECT_THAT(answer.notes, ElementsAre("1 of 78 figures differ"));
  const Cell& agrees = table_of(answer, "deck").rows.at(5).back();
  EXPECT_EQ(agrees.shown, "DIFFERS");
  EXPECT_FALSE(std::get<bool>(agrees.value));
}

}  // namespace
}  // namespace annulet::plan
