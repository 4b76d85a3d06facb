#include "annulet/schedule/validator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

namespace annulet::schedule {
namespace {

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Contributions everyone(int world) { return (Contributions{1} << world) - 1; }

Contributions only(int rank) { return Contributions{1} << rank; }

// Reads or writes of step s on region r.
bool reads(const Step& s, Region r) { return s.action != Action::receive && s.from.overlaps(r); }
bool touches_to(const Step& s, Region r) { return s.action != Action::send && s.to.overlaps(r); }

void check_order(const Plan& plan) {
  const std::size_t n = plan.steps.size();
  const auto writes_input = [](const Step& s) { return s.action != Action::send && s.to.place == Place::input; };
  if (std::ranges::any_of(plan.steps, writes_input)) {
    throw Violation(fmt::format("rank {}: a step writes into the input", plan.rank));
  }
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));  // before[b][a]: a is done when b starts
  for (std::size_t b = 0; b < n; ++b) {
    for (const StepId id : plan.after(plan.steps[b])) {
      const auto a = static_cast<std::size_t>(id);
      if (a >= b) throw Violation(fmt::format("rank {}: step {} waits for a later step", plan.rank, b));
      for (std::size_t c = 0; c < a; ++c) before[b][c] = before[b][c] || before[a][c];
      before[b][a] = true;
    }
    const Step& later = plan.steps[b];
    for (std::size_t a = 0; a < b; ++a) {
      const Step& earlier = plan.steps[a];
      const bool writes_after =
          later.action != Action::send && (reads(earlier, later.to) || touches_to(earlier, later.to));
      const bool reads_after = later.action != Action::receive && touches_to(earlier, later.from);
      if ((writes_after || reads_after) && !before[b][a]) {
        throw Violation(fmt::format("rank {}: steps {} and {} use the same region unordered", plan.rank, a, b));
      }
    }
  }
}

class Run {
 public:
  Run(std::span<const Plan> plans, const Promise& promise) : plans_(plans), ranks_(plans.size()) {
    for (std::size_t r = 0; r < plans.size(); ++r) {
      Rank& rank = ranks_[r];
      std::vector<Contributions>& before = reads_input(plans[r]) ? rank.input : rank.data;
      rank.data.resize(static_cast<std::size_t>(plans[r].elements));
      before.resize(rank.data.size());
      for (std::size_t e = 0; e < before.size(); ++e) {
        before[e] = promise.before(static_cast<int>(r), static_cast<Elements>(e));
      }
      rank.scratch.assign(static_cast<std::size_t>(plans[r].scratch), 0);
      rank.done.assign(plans[r].steps.size(), false);
    }
  }

  void to_the_end() {
    while (advance()) {
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t s = 0; s < ranks_[r].done.size(); ++s) {
        if (!ranks_[r].done[s]) throw Violation(fmt::format("rank {}: step {} never completes (deadlock)", r, s));
      }
    }
    for (const auto& [pair, queue] : posted_) {
      if (!queue.empty())
        throw Violation(fmt::format("a send from {} to {} is never received", pair.first, pair.second));
    }
  }

  void check(const Promise& promise) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t e = 0; e < ranks_[r].data.size(); ++e) {
        const Contributions wanted = promise.after(static_cast<int>(r), static_cast<Elements>(e));
        if (wanted != 0 && ranks_[r].data[e] != wanted) {
          throw Violation(fmt::format("rank {}: element {} holds contributions {:b}, wanted {:b}", r, e,
                                      ranks_[r].data[e], wanted));
        }
      }
    }
  }

 private:
  struct Rank {
    std::vector<Contributions> data, scratch, input;
    std::vector<bool> done;
    std::size_t next_send = 0, next_receive = 0;  // posting is in plan order
    bool sending = false;                         // one send in flight
  };
  struct PostedSend {
    std::size_t step;
  };

  std::vector<Contributions>& memory(std::size_t r, Place place) {
    if (place == Place::input) return ranks_[r].input;
    return place == Place::data ? ranks_[r].data : ranks_[r].scratch;
  }

  bool ready(std::size_t r, std::size_t s) const {
    for (const StepId id : plans_[r].after(plans_[r].steps[s])) {
      if (!ranks_[r].done[static_cast<std::size_t>(id)]) return false;
    }
    return true;
  }

  // First step of this kind that is neither posted nor before `from`.
  std::optional<std::size_t> next(std::size_t r, Action action, std::size_t& from) const {
    const auto& steps = plans_[r].steps;
    while (from < steps.size() && steps[from].action != action) ++from;
    return from < steps.size() ? std::optional(from) : std::nullopt;
  }

  bool advance() {
    bool moved = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      moved |= local_steps(r);
      moved |= post_send(r);
      moved |= receive(r);
    }
    return moved;
  }

  bool local_steps(std::size_t r) {
    bool moved = false;
    for (std::size_t s = 0; s < plans_[r].steps.size(); ++s) {
      const Step& step = plans_[r].steps[s];
      if (step.action == Action::send || step.action == Action::receive) continue;
      if (ranks_[r].done[s] || !ready(r, s)) continue;
      apply(r, step);
      ranks_[r].done[s] = moved = true;
    }
    return moved;
  }

  void apply(std::size_t r, const Step& step) {
    if (step.from.interval.count != step.to.interval.count)
      throw Violation(fmt::format("rank {}: counts differ in a step", r));
    for (Elements i = 0; i < step.count(); ++i) {
      const Contributions in = at(r, step.from, i);
      Contributions& out = at(r, step.to, i);
      if (in == 0) throw Violation(fmt::format("rank {}: an undefined element is used", r));
      if (step.action == Action::combine && (out == 0 || (out & in) != 0)) {
        throw Violation(fmt::format("rank {}: contributions {:b} and {:b} are combined", r, out, in));
      }
      out = step.action == Action::combine ? out | in : in;
    }
  }

  Contributions& at(std::size_t r, Region region, Elements i) {
    auto& cells = memory(r, region.place);
    const auto index = static_cast<std::size_t>(region.interval.first + i);
    if (index >= cells.size()) throw Violation(fmt::format("rank {}: a step reaches outside its memory", r));
    return cells[index];
  }

  bool post_send(std::size_t r) {
    const auto s = next(r, Action::send, ranks_[r].next_send);
    if (!s || ranks_[r].sending || !ready(r, *s)) return false;
    ranks_[r].sending = true;
    posted_[{static_cast<int>(r), plans_[r].steps[*s].peer}].push_back({*s});
    ++ranks_[r].next_send;
    return true;
  }

  bool receive(std::size_t r) {
    const auto s = next(r, Action::receive, ranks_[r].next_receive);
    if (!s || !ready(r, *s)) return false;
    const Step& step = plans_[r].steps[*s];
    auto& queue = posted_[{step.peer, static_cast<int>(r)}];
    if (queue.empty()) return false;
    const auto sender = static_cast<std::size_t>(step.peer);
    const Step& sent = plans_[sender].steps[queue.front().step];
    if (sent.count() != step.count()) {
      throw Violation(
          fmt::format("rank {} receives {} elements where rank {} sends {}", r, step.count(), sender, sent.count()));
    }
    for (Elements i = 0; i < step.count(); ++i) {
      at(r, step.to, i) = at(sender, sent.from, i);
      if (at(r, step.to, i) == 0) throw Violation(fmt::format("rank {} sends an undefined element", sender));
    }
    ranks_[sender].done[queue.front().step] = ranks_[r].done[*s] = true;
    ranks_[sender].sending = false;
    queue.erase(queue.begin());
    ++ranks_[r].next_receive;
    return true;
  }

  std::span<const Plan> plans_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::vector<PostedSend>> posted_;
};

int owner(Elements elements, int world, Elements element) {
  int r = 0;
  while (chunk(elements, world, r).end() <= element) ++r;
  return r;
}

}  // namespace

Promise all_reduce_promise(int world) {
  return {[](int rank, Elements) { return only(rank); }, [world](int, Elements) { return everyone(world); }};
}

Promise reduce_scatter_promise(int world, Elements elements) {
  return {[](int rank, Elements) { return only(rank); },
          [=](int rank, Elements e) { return owner(elements, world, e) == rank ? everyone(world) : Contributions{0}; }};
}

Promise all_gather_promise(int world, Elements elements) {
  return {[=](int rank, Elements e) { return owner(elements, world, e) == rank ? only(rank) : Contributions{0}; },
          [=](int, Elements e) { return only(owner(elements, world, e)); }};
}

Promise broadcast_promise(int root) {
  return {[=](int rank, Elements) { return rank == root ? only(root) : Contributions{0}; },
          [=](int, Elements) { return only(root); }};
}

Promise reduce_promise(int world, int root) {
  return {[](int rank, Elements) { return only(rank); },
          [=](int rank, Elements) { return rank == root ? everyone(world) : Contributions{0}; }};
}

Promise gather_promise(std::span<const Elements> lengths) {
  std::vector<int> owners;  // [element]
  for (std::size_t r = 0; r < lengths.size(); ++r)
    owners.insert(owners.end(), static_cast<std::size_t>(lengths[r]), static_cast<int>(r));
  const auto owner_of = [owners](Elements e) { return owners.at(static_cast<std::size_t>(e)); };
  return {[=](int rank, Elements e) { return owner_of(e) == rank ? only(rank) : Contributions{0}; },
          [=](int, Elements e) { return only(owner_of(e)); }};
}

Promise promise_of(Collective collective, const PlanShape& shape) {
  switch (collective) {
    case Collective::all_reduce:
      return all_reduce_promise(shape.world);
    case Collective::reduce_scatter:
      return reduce_scatter_promise(shape.world, shape.elements);
    case Collective::all_gather:
      return all_gather_promise(shape.world, shape.elements);
    case Collective::broadcast:
      return broadcast_promise(shape.root);
    case Collective::reduce:
      return reduce_promise(shape.world, shape.root);
  }
  throw std::logic_error("no such collective");
}

std::string validate(std::span<const Plan> plans, const Promise& promise) {
  try {
    for (const Plan& plan : plans) check_order(plan);
    Run run(plans, promise);
    run.to_the_end();
    run.check(promise);
  } catch (const Violation& violation) {
    return violation.what();
  }
  return {};
}

}  // namespace annulet::schedule
