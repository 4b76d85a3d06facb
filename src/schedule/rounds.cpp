#include "annulet/schedule/rounds.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace annulet::schedule {
namespace {

bool is_message(const Step& step) { return step.action == Action::send || step.action == Action::receive; }

class Labeller {
 public:
  explicit Labeller(std::span<const Plan> plans) : plans_(plans) {
    for (const Plan& plan : plans) {
      rounds_.of.emplace_back(plan.steps.size(), kUnknown);
      others_.emplace_back(plan.steps.size());
    }
    std::map<std::pair<int, int>, Meeting> last;  // of a channel: from, to
    for (const Meeting& meeting : meetings_of(plans)) {
      other(meeting.from, meeting.send) = {meeting.to, meeting.receive};
      other(meeting.to, meeting.receive) = {meeting.from, meeting.send};
      const auto [before, first] = last.try_emplace({meeting.from, meeting.to}, meeting);
      if (first) continue;
      if (!together(before->second, meeting)) follows_[{meeting.from, meeting.send}] = before->second.send;
      before->second = meeting;
    }
  }

  Rounds label() {
    for (const Plan& plan : plans_) {
      for (StepId s = 0; s < std::ssize(plan.steps); ++s) rounds_.count = std::max(rounds_.count, round(plan.rank, s));
    }
    return std::move(rounds_);
  }

 private:
  static constexpr int kUnknown = -1, kAsked = -2;

  int round(int rank, StepId step) {
    const Plan& plan = plans_[static_cast<std::size_t>(rank)];
    if (const int known = at(rank, step); known >= 0) return known;
    ANNULET_EXPECTS(at(rank, step) != kAsked, "no step waits for itself");
    at(rank, step) = kAsked;
    int latest = waits_for(rank, step);
    if (is_message(plan.steps[static_cast<std::size_t>(step)])) {
      const auto [there, its] = other(rank, step);
      latest = std::max(latest, waits_for(there, its));
      const bool sends = plan.steps[static_cast<std::size_t>(step)].action == Action::send;
      const auto before = follows_.find(sends ? std::pair(rank, step) : std::pair(there, its));
      if (before != follows_.end()) latest = std::max(latest, round(before->first.first, before->second));
      ++latest;
      at(there, its) = latest;
    }
    return at(rank, step) = latest;
  }

  // Whether nothing tells two messages of a channel apart: a chunk that wraps around the end, say.
  bool together(const Meeting& a, const Meeting& b) const {
    const Plan& sender = plans_[static_cast<std::size_t>(a.from)];
    const auto after = [&](StepId send) { return sender.after(sender.steps[static_cast<std::size_t>(send)]); };
    if (!std::ranges::equal(after(a.send), after(b.send))) return false;
    const Plan& receiver = plans_[static_cast<std::size_t>(a.to)];
    return std::ranges::all_of(receiver.steps, [&](const Step& step) {
      const auto before = receiver.after(step);
      return std::ranges::count(before, a.receive) == std::ranges::count(before, b.receive);
    });
  }

  int waits_for(int rank, StepId step) {
    const Plan& plan = plans_[static_cast<std::size_t>(rank)];
    int latest = 0;
    for (const StepId before : plan.after(plan.steps[static_cast<std::size_t>(step)]))
      latest = std::max(latest, round(rank, before));
    return latest;
  }

  int& at(int rank, StepId step) { return rounds_.of[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)]; }

  std::pair<int, StepId>& other(int rank, StepId step) {
    return others_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)];
  }

  std::span<const Plan> plans_;
  Rounds rounds_;
  std::map<std::pair<int, StepId>, StepId> follows_;         // rank and send: the send whose round is before
  std::vector<std::vector<std::pair<int, StepId>>> others_;  // [rank, step]: where a message comes from or goes to
};

Region behind_data(Region region, Elements data) {
  if (region.place == Place::data) return region;
  return {Place::data, {data + region.interval.first, region.interval.count}};
}

}  // namespace

std::vector<Meeting> meetings_of(std::span<const Plan> plans) {
  std::map<std::pair<int, int>, std::vector<StepId>> receives;  // from, to
  std::map<std::pair<int, int>, std::size_t> met;
  std::size_t left = 0;
  for (const Plan& plan : plans) {
    for (StepId s = 0; s < std::ssize(plan.steps); ++s) {
      const Step& step = plan.steps[static_cast<std::size_t>(s)];
      if (step.action == Action::receive) receives[{step.peer, plan.rank}].push_back(s), ++left;
    }
  }
  std::vector<Meeting> meetings;
  for (const Plan& plan : plans) {
    for (StepId s = 0; s < std::ssize(plan.steps); ++s) {
      const Step& step = plan.steps[static_cast<std::size_t>(s)];
      if (step.action != Action::send) continue;
      const auto& there = receives[{plan.rank, step.peer}];
      std::size_t& next = met[{plan.rank, step.peer}];
      ANNULET_EXPECTS(next < there.size(), "every send meets a receive");
      meetings.push_back({plan.rank, step.peer, s, there[next++]});
      --left;
    }
  }
  ANNULET_EXPECTS(left == 0, "every receive meets a send");
  return meetings;
}

Rounds rounds_of(std::span<const Plan> plans) { return Labeller(plans).label(); }

Plan part_of(const Plan& plan, std::span<const int> rounds, int first, int last) {
  Plan part{plan.rank, plan.world, plan.elements + plan.scratch, 0, {}, {}};
  std::vector<StepId> renamed(plan.steps.size(), kNoStep);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (rounds[s] < first || rounds[s] > last) continue;
    Step step = plan.steps[s];
    const auto after = plan.after(step);
    step.from = behind_data(step.from, plan.elements), step.to = behind_data(step.to, plan.elements);
    step.first_edge = static_cast<std::int32_t>(part.edges.size());
    for (const StepId before : after) {
      const StepId kept = renamed[static_cast<std::size_t>(before)];
      if (kept != kNoStep) part.edges.push_back(kept);
    }
    step.edge_count = static_cast<std::int32_t>(part.edges.size()) - step.first_edge;
    renamed[s] = static_cast<StepId>(part.steps.size());
    part.steps.push_back(step);
  }
  return part;
}

}  // namespace annulet::schedule
