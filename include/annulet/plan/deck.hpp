#pragma once
// Published figures of data-parallel training beside this program's own, computed from configs/models and
// configs/machines by the same functions that answer every other question, and printed to the published digits: the
// collectives of LLaMA 7B's gradient on H100s, ZeRO's memory (Rajbhandari et al. 2020, figure 1 among it), one step and
// its MFU, and where compression stops paying.
#include <string>
#include <vector>

#include "annulet/plan/answer.hpp"

namespace annulet::plan {

struct Figure {
  std::string section, what;
  std::string published, ours;

  bool agrees() const { return published == ours; }
};

// Throws InputError where configs/ is not to be found.
std::vector<Figure> deck_figures();

// Does not hold if a figure differs.
Answer plan_deck(const std::vector<Figure>& figures = deck_figures());

}  // namespace annulet::plan
