#include "annulet/schedule/reproducible.hpp"

#include <gmock/gmock.h>

#include "annulet/schedule/micro_shards.hpp"
#include "annulet/schedule/validator.hpp"
#include "schedule/plans.hpp"

namespace annulet::schedule {
namespace {

constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::reduce_scatter};

std::vector<Plan> plans(Collective collective, int micro_shards, PlanShape shape) {
  return plans_of(shape.world, [&](int rank) {
    shape.rank = rank;
    return reproducible_plan(collective, {shape, micro_shards});
  });
}

Contributions bits(Interval micro_shards) {
  return ((Contributions{1} << micro_shards.count) - 1) << micro_shards.first;
}

// Pieces before; afterwards the sum of all micro-shards in the first piece, everywhere or in the own chunk.
Promise promise(Collective collective, int micro_shards, int world, Elements elements) {
  std::vector<std::vector<Interval>> pieces;
  for (const Interval owned : owned_micro_shards(micro_shards, world)) pieces.push_back(pieces_of(micro_shards, owned));
  return {[=](int rank, Elements e) {
            return bits(pieces[static_cast<std::size_t>(rank)][static_cast<std::size_t>(e / elements)]);
          },
          [=](int rank, Elements e) {
            const Interval own = chunk(elements, world, rank);
            const bool finished = collective == Collective::all_reduce ? e < elements : own.overlaps({e, 1});
            return finished ? bits({0, micro_shards}) : Contributions{0};
          }};
}

// check(collective, S, shape) for every world that S allows.
template <class Check>
void for_every_world(int most_ranks, std::initializer_list<int> all_micro_shards, Check check) {
  for (const Collective collective : kCollectives) {
    for (const int micro_shards : all_micro_shards) {
      for (int p = 1; p <= std::min(most_ranks, micro_shards); ++p) {
        SCOPED_TRACE(testing::Message() << to_text(collective) << " S=" << micro_shards << " p=" << p);
        check(collective, micro_shards, p);
      }
    }
  }
}

TEST(Reproducible, SumsEveryMicroShardOnce) {
  for_every_world(17, {1, 2, 3, 7, 8, 13, 17}, [](Collective collective, int micro_shards, int p) {
    for (const Elements n : {0, 1, p - 1, p + 1, 40}) {
      for (const Elements segment : {2, 64}) {
        const PlanShape shape{0, p, n, segment};
        ASSERT_EQ(validate(plans(collective, micro_shards, shape), promise(collective, micro_shards, p, n)), "")
            << "n=" << n << " segment=" << segment;
      }
    }
  });
}

// What an element holds, as a formula: micro-shards in brackets as they were added.
std::string formula_of(Interval node) {
  if (node.count == 1) return std::to_string(node.first);
  const Elements half = first_half(node.count);
  return "(" + formula_of({node.first, half}) + "+" + formula_of({node.first + half, node.count - half}) + ")";
}

// `a + b` or `b + a`, which are the same.
std::string sum_of(const std::string& a, const std::string& b) {
  const auto first = [](const std::string& text) { return std::stoi(text.substr(text.find_first_not_of('('))); };
  return first(a) < first(b) ? "(" + a + "+" + b + ")" : "(" + b + "+" + a + ")";
}

// Runs plans of vectors of one element for each rank, with formulas instead of numbers, whatever may be done first.
std::vector<std::string> run_on_formulas(int micro_shards, int p) {
  const auto all = plans(Collective::all_reduce, micro_shards, {0, p, p, 1});
  std::vector<std::vector<std::string>> data, scratch;
  std::vector<std::vector<bool>> done;
  std::map<std::pair<int, int>, std::vector<std::string>> under_way;
  for (const Plan& plan : all) {
    data.emplace_back(), scratch.emplace_back(static_cast<std::size_t>(plan.scratch));
    for (const Interval piece :
         pieces_of(micro_shards, owned_micro_shards(micro_shards, p)[static_cast<std::size_t>(plan.rank)])) {
      data.back().insert(data.back().end(), static_cast<std::size_t>(p), formula_of(piece));
    }
    done.emplace_back(plan.steps.size());
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (const Plan& plan : all) {
      const auto r = static_cast<std::size_t>(plan.rank);
      const auto at = [&](Region region) -> std::string& {
        return (region.place == Place::data ? data : scratch)[r][static_cast<std::size_t>(region.interval.first)];
      };
      for (std::size_t s = 0; s < plan.steps.size(); ++s) {
        const Step& step = plan.steps[s];
        const auto is_done = [&](StepId id) { return done[r][static_cast<std::size_t>(id)]; };
        if (done[r][s] || !std::ranges::all_of(plan.after(step), is_done)) continue;
        if (step.action == Action::send) under_way[{plan.rank, step.peer}].push_back(at(step.from));
        if (step.action == Action::receive) {
          auto& queue = under_way[{step.peer, plan.rank}];
          if (queue.empty()) continue;
          at(step.to) = queue.front(), queue.erase(queue.begin());
        }
        if (step.action == Action::combine) at(step.to) = sum_of(at(step.to), at(step.from));
        done[r][s] = moved = true;
      }
    }
  }
  std::vector<std::string> results;
  for (const auto& of_rank : data) results.insert(results.end(), of_rank.begin(), of_rank.begin() + p);
  return results;
}

TEST(Reproducible, AddsInTheOrderOfTheTreeOnAnyNumberOfRanks) {
  for (const int micro_shards : {1, 2, 3, 6, 8, 13}) {
    const std::string expected = formula_of({0, micro_shards});
    for (int p = 1; p <= micro_shards; ++p) {
      EXPECT_THAT(run_on_formulas(micro_shards, p), testing::Each(expected)) << "S=" << micro_shards << " p=" << p;
    }
  }
}

TEST(Reproducible, SendsWhatIsStated) {
  for_every_world(24, {1, 2, 3, 8, 12, 24}, [](Collective collective, int micro_shards, int p) {
    for (const Elements n : {0, p - 1, 3 * p + 2}) {
      const auto all = plans(collective, micro_shards, {0, p, n, 4});
      ASSERT_EQ(sent_by_all(all), reproducible_total(collective, micro_shards, p, n)) << n;
    }
  });
}

TEST(Reproducible, SendsWhatTheDefaultSendsWhereEveryRankHasOnePiece) {
  for (const int micro_shards : {1, 2, 4, 8, 12, 24, 32}) {
    for (int p = 1; p <= micro_shards; ++p) {
      const int each = micro_shards / p;
      if (micro_shards % p != 0 || (each & (each - 1)) != 0) continue;
      const Elements n = 7 * p + 2;
      EXPECT_EQ(reproducible_total(Collective::all_reduce, micro_shards, p, n), 2 * (p - 1) * n);
      EXPECT_EQ(reproducible_total(Collective::reduce_scatter, micro_shards, p, n), (p - 1) * n);
    }
  }
}

TEST(Reproducible, SendsAtMostHalfAsMuchAgain) {
  for (int micro_shards = 1; micro_shards <= 32; ++micro_shards) {
    for (int p = 1; p <= micro_shards; ++p) {
      const Elements n = 100 * p;
      EXPECT_LE(2 * reproducible_total(Collective::all_reduce, micro_shards, p, n), 3 * 2 * (p - 1) * n)
          << "S=" << micro_shards << " p=" << p;
    }
  }
}

TEST(Reproducible, TakesOneStepToSumAndOneToGather) {
  for (const int p : {2, 3, 5, 8}) {
    EXPECT_EQ(longest_way(plans(Collective::reduce_scatter, 8, {0, p, 3 * p, 2})), 1);
    EXPECT_EQ(longest_way(plans(Collective::all_reduce, 8, {0, p, 3 * p, 2})), 2);
  }
}

}  // namespace
}  // namespace annulet::schedule
