#pragma once
// A replayed collective as text, round by round: a row a rank, a column a chunk; in front of what a rank holds
//   >  just received (orange)    =  finished (green)    *  finished by what was just received
// Held is shown as the ranks whose contributions are in it ("0.2." of four: those of ranks 0 and 2), as how many where
// that is too wide, or as the values that a run really had.
#include <string>
#include <vector>

#include "annulet/report/collective_replay.hpp"
#include "annulet/report/step_drawing.hpp"

namespace annulet::report {

// What a run had in its buffers, [round, rank, element]; empty: contributions are shown.
using ReplayValues = std::vector<std::vector<std::vector<double>>>;

class CollectiveDrawing {
 public:
  explicit CollectiveDrawing(Replay replay, ReplayValues values = {});

  const Replay& replay() const { return replay_; }

  // Lines of at most options.width columns (at least 40 are used; no more than the messages and the columns need).
  std::string round(int round, const DrawingOptions& options) const;
  std::string legend(const DrawingOptions& options) const;

 private:
  struct Layout;
  Layout layout(int width) const;
  std::string header(std::size_t piece) const;
  std::string numbers(int round, int rank, std::size_t piece, const Layout& layout) const;
  std::string text(int round, int rank, std::size_t piece, const Layout& layout) const;
  std::string cell(int round, int rank, std::size_t piece, const Layout& layout, Colour colour) const;
  std::string name(schedule::Interval elements) const;
  std::string messages(int round, int width) const;

  Replay replay_;
  ReplayValues values_;
  std::size_t number_width_ = 1;  // of all values that may be shown, so that columns stand still
};

// Words of a line, broken where it is longer than `width`; what follows is indented.
std::string wrap_words(const std::string& line, int width, int indent);

}  // namespace annulet::report
