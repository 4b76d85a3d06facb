#include "annulet/report/collective_replay.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "annulet/base/error.hpp"
#include "annulet/cost/simulate.hpp"
#include "annulet/schedule/rounds.hpp"

namespace annulet::report {
namespace {

using schedule::Action;
using schedule::Contributions;
using schedule::Interval;
using schedule::Place;
using schedule::Plan;
using schedule::Region;
using schedule::Step;

std::size_t index_of(int rank_or_step) { return static_cast<std::size_t>(rank_or_step); }

// What each element of a memory holds, as runs of equal ones, so that a vector may be as long as it likes.
class HeldRuns {
 public:
  struct Run {
    Elements offset;  // in what was read
    Elements count;
    Contributions ranks;
  };

  Contributions at(Elements element) const { return std::prev(runs_.upper_bound(element))->second; }

  std::vector<Run> read(Interval where) const {
    std::vector<Run> runs;
    for (Elements e = where.first; e < where.end();) {
      const auto next = runs_.upper_bound(e);
      const Elements end = next == runs_.end() ? where.end() : std::min(next->first, where.end());
      runs.push_back({e - where.first, end - e, std::prev(next)->second});
      e = end;
    }
    return runs;
  }

  void fill(Interval where, Contributions ranks) {
    if (where.count == 0) return;
    const Contributions behind = at(where.end());
    runs_.erase(runs_.lower_bound(where.first), runs_.lower_bound(where.end()));
    runs_[where.first] = ranks;
    runs_.emplace(where.end(), behind);
  }

  void write(Interval where, const std::vector<Run>& runs) {
    for (const Run& run : runs) fill({where.first + run.offset, run.count}, run.ranks);
  }

  void add(Interval where, const std::vector<Run>& runs) {
    for (const Run& run : runs) {
      for (const Run& here : read({where.first + run.offset, run.count}))
        fill({where.first + run.offset + here.offset, here.count}, here.ranks | run.ranks);
    }
  }

 private:
  std::map<Elements, Contributions> runs_{{0, 0}};  // from the key up to the next one
};

// The chunks if messages and sums begin and end where they do; otherwise the vector cut there as well.
void cut_into_pieces(const ReplayInput& input, Replay& replay) {
  std::set<Elements> asked{0, input.plans.front().elements}, cuts = asked;
  for (const Interval chunk : input.chunks) asked.insert({chunk.first, chunk.end()});
  for (const Plan& plan : input.plans) {
    for (const Step& step : plan.steps) {
      for (const Region& region : {step.from, step.to}) {
        if (region.place == Place::data && region.interval.count > 0)
          cuts.insert({region.interval.first, region.interval.end()});
      }
    }
  }
  replay.chunked = std::ranges::includes(asked, cuts);
  replay.pieces = input.chunks;
  if (replay.chunked) return;
  replay.pieces.clear();
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut)
    replay.pieces.push_back({*cut, *std::next(cut) - *cut});
}

class Replayer {
 public:
  explicit Replayer(const ReplayInput& input)
      : input_(input), rounds_(schedule::rounds_of(input.plans)), ranks_(input.plans.size()) {
    ANNULET_EXPECTS(std::ranges::none_of(input.plans, schedule::reads_input), "a drawing shows what is in place");
    replay_.element = input.element;
    cut_into_pieces(input, replay_);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const Interval piece : replay_.pieces) {
        if (piece.count > 0) ranks_[r].data.fill(piece, input.promise.before(static_cast<int>(r), piece.first));
      }
    }
  }

  Replay run() {
    const auto meetings = schedule::meetings_of(input_.plans);
    ReplayFrame frame;
    frame.sent.assign(ranks_.size(), Bytes(0));
    for (int round = 0; round <= rounds_.count; ++round) {
      frame.messages.clear();
      for (Rank& rank : ranks_) rank.changed.clear();
      exchange(meetings, round, frame);
      for (const Plan& plan : input_.plans) compute(plan, round);
      frame.held = held();
      frame.time = std::max(frame.time, time_until(round));
      replay_.frames.push_back(frame);
    }
    return std::move(replay_);
  }

 private:
  struct Rank {
    HeldRuns data, scratch;
    std::vector<Interval> changed;  // of data, in this round
  };

  static HeldRuns& memory(Rank& rank, Place place) { return place == Place::data ? rank.data : rank.scratch; }

  // Everything leaves before anything arrives: messages of a round wait for nothing in it.
  void exchange(const std::vector<schedule::Meeting>& meetings, int round, ReplayFrame& frame) {
    std::vector<std::pair<const schedule::Meeting*, std::vector<HeldRuns::Run>>> under_way;
    for (const schedule::Meeting& meeting : meetings) {
      if (rounds_.of[index_of(meeting.from)][index_of(meeting.send)] != round) continue;
      const Region from = step(meeting.from, meeting.send).from;
      under_way.emplace_back(&meeting, memory(ranks_[index_of(meeting.from)], from.place).read(from.interval));
    }
    for (const auto& [meeting, content] : under_way) {
      const Step& send = step(meeting->from, meeting->send);
      const Region to = step(meeting->to, meeting->receive).to;
      write(meeting->to, to, content);
      frame.messages.push_back(
          {meeting->from, meeting->to, send.from.place == Place::data ? send.from.interval : to.interval});
      frame.sent[index_of(meeting->from)] += input_.element * send.count();
    }
  }

  void compute(const Plan& plan, int round) {
    Rank& rank = ranks_[index_of(plan.rank)];
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      if (rounds_.of[index_of(plan.rank)][s] != round) continue;
      if (step.action == Action::copy)
        write(plan.rank, step.to, memory(rank, step.from.place).read(step.from.interval));
      if (step.action != Action::combine) continue;
      memory(rank, step.to.place).add(step.to.interval, memory(rank, step.from.place).read(step.from.interval));
      if (step.to.place == Place::data) rank.changed.push_back(step.to.interval);
    }
  }

  void write(int to, Region where, const std::vector<HeldRuns::Run>& content) {
    Rank& rank = ranks_[index_of(to)];
    memory(rank, where.place).write(where.interval, content);
    if (where.place == Place::data) rank.changed.push_back(where.interval);
  }

  std::vector<std::vector<HeldPiece>> held() const {
    std::vector<std::vector<HeldPiece>> all(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const Interval piece : replay_.pieces) {
        HeldPiece& held = all[r].emplace_back();
        if (piece.count == 0) continue;
        const auto runs = ranks_[r].data.read(piece);
        const auto same = [&](const HeldRuns::Run& run) { return run.ranks == runs.front().ranks; };
        ANNULET_EXPECTS(std::ranges::all_of(runs, same), "a piece holds the same everywhere");
        held.ranks = runs.front().ranks;
        const Contributions promised = input_.promise.after(static_cast<int>(r), piece.first);
        held.finished = promised != 0 && held.ranks == promised;
        held.received =
            std::ranges::any_of(ranks_[r].changed, [&](Interval changed) { return changed.overlaps(piece); });
      }
    }
    return all;
  }

  // When all of this and the earlier rounds has arrived and been added.
  Seconds time_until(int round) const {
    std::vector<Plan> parts;
    for (const Plan& plan : input_.plans)
      parts.push_back(schedule::part_of(plan, rounds_.of[index_of(plan.rank)], 0, round));
    cost::LaunchedCollective collective{{}, input_.element, std::vector<Seconds>(parts.size(), Seconds(0))};
    for (const Plan& part : parts) collective.plans.push_back(&part);
    return std::ranges::max(cost::simulate(std::span(&collective, 1), input_.network).front());
  }

  const Step& step(int rank, schedule::StepId id) const { return input_.plans[index_of(rank)].steps[index_of(id)]; }

  const ReplayInput& input_;
  schedule::Rounds rounds_;
  std::vector<Rank> ranks_;
  Replay replay_;
};

}  // namespace

Bytes Replay::sent(int round) const {
  Bytes total{0};
  for (const Bytes bytes : frames[index_of(round)].sent) total += bytes;
  return total;
}

Replay replay_collective(const ReplayInput& input) { return Replayer(input).run(); }

}  // namespace annulet::report
