#include "annulet/cost/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <queue>

#include "port.hpp"

namespace annulet::cost {
namespace {

using schedule::Action;
using schedule::Plan;
using schedule::Step;
using schedule::StepId;

std::size_t index(int rank_or_step) { return static_cast<std::size_t>(rank_or_step); }

// One rank's run of one collective.
struct Run {
  const Plan* plan = nullptr;
  std::vector<int> waiting;                     // [step]
  std::vector<std::vector<StepId>> dependents;  // [step]
  std::vector<StepId> sends, receives;          // in plan order
  std::size_t next_send = 0, next_receive = 0;
  int sending = 0;  // posted, not yet left
  std::deque<StepId> computable;
  std::size_t remaining = 0;
};

struct Event {
  Seconds at;
  std::uint64_t order;  // ties in order of creation
  enum class Kind { launch, left, due, arrived, combined, look, carried } kind;
  int rank;  // for `carried` the node
  std::size_t collective;
  StepId step;              // of the sender for `left`, `due` and `arrived`
  std::size_t message = 0;  // of its channel, for `due` and `arrived`

  friend bool operator>(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }
};

class Simulation {
 public:
  Simulation(std::span<const LaunchedCollective> collectives, const Network& network, const SimulationOptions& options)
      : collectives_(collectives), network_(network), options_(options) {
    const int world = collectives.empty() ? 0 : static_cast<int>(collectives.front().plans.size());
    ANNULET_EXPECTS(network.node.empty() || network.node.size() == index(world), "every rank is on a node");
    ranks_.resize(index(world));
    ports_.resize(index(world)), cards_.resize(index(network.nodes()));
    core_.resize(index(world), Seconds::min());
    ends_.assign(collectives.size(), std::vector<Seconds>(index(world)));
    for (int r = 0; r < world; ++r) prepare(r);
  }

  std::vector<std::vector<Seconds>> run() {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      handle(event);
    }
    for (const Rank& rank : ranks_) {
      ANNULET_EXPECTS(rank.active.empty() && rank.queued.empty(), "the plans of all ranks fit together");
    }
    return ends_;
  }

 private:
  struct Rank {
    std::vector<Run> runs;            // [collective]
    std::deque<std::size_t> queued;   // launched, waiting for room
    std::vector<std::size_t> active;  // oldest first
    bool busy = false;                // combining
    bool will_look = false;           // and then do what it can
    std::size_t launches = 0;
  };
  // Messages from one rank to another within one collective: the k-th send meets the k-th receive. A small one may
  // arrive before a large one that was sent earlier.
  struct Message {
    Elements count;
    bool arrived = false;
  };
  struct Channel {
    std::vector<Message> sent;
    std::vector<StepId> posted;
  };

  void prepare(int r) {
    Rank& rank = ranks_[index(r)];
    rank.runs.resize(collectives_.size());
    Seconds last{0};
    for (std::size_t c = 0; c < collectives_.size(); ++c) {
      ANNULET_EXPECTS(collectives_[c].plans.size() == ranks_.size(), "every collective has the same ranks");
      rank.runs[c] = make_run(*collectives_[c].plans[index(r)]);
      last = c == 0 ? collectives_[c].launched[index(r)] : std::max(last, collectives_[c].launched[index(r)]);
      add({last, 0, Event::Kind::launch, r, c, schedule::kNoStep});
    }
  }

  static Run make_run(const Plan& plan) {
    Run run;
    run.plan = &plan;
    run.remaining = plan.steps.size();
    run.dependents.resize(plan.steps.size());
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      run.waiting.push_back(step.edge_count);
      for (const StepId before : plan.after(step)) run.dependents[index(before)].push_back(static_cast<StepId>(s));
      if (step.action == Action::send) run.sends.push_back(static_cast<StepId>(s));
      if (step.action == Action::receive) run.receives.push_back(static_cast<StepId>(s));
      const bool computes = step.action == Action::combine || step.action == Action::copy;
      if (computes && step.edge_count == 0) run.computable.push_back(static_cast<StepId>(s));
    }
    return run;
  }

  void add(Event event) {
    event.order = created_++;
    events_.push(event);
  }

  void handle(const Event& event) {
    Rank& rank = ranks_[event.kind == Event::Kind::carried ? 0 : index(event.rank)];
    switch (event.kind) {
      case Event::Kind::launch:
        rank.queued.push_back(event.collective);
        return advance(event.rank);
      case Event::Kind::left:
        --rank.runs[event.collective].sending;
        finish(event.rank, event.collective, event.step);
        return attend(event.rank);
      case Event::Kind::due:
        return add(
            {next_look(event.rank), 0, Event::Kind::arrived, event.rank, event.collective, event.step, event.message});
      case Event::Kind::arrived:
        return arrive(event);
      case Event::Kind::combined:
        rank.busy = false;
        finish(event.rank, event.collective, event.step);
        return advance(event.rank);
      case Event::Kind::look:
        rank.will_look = false;
        return advance(event.rank);
      case Event::Kind::carried:
        return carried(event.rank);
    }
  }

  bool is_busy() const { return options_.attention.period > Seconds(0) && !options_.attention.busy.empty(); }

  // When a rank looks at its messages next. Ranks do not look in step.
  Seconds next_look(int r) const {
    if (!is_busy()) return now_;
    const Attention& attention = options_.attention;
    const auto after = std::ranges::lower_bound(attention.busy, now_, {}, &Attention::Interval::begin);
    if (after == attention.busy.begin() || now_ >= std::prev(after)->end) return now_;
    const Seconds end = std::prev(after)->end;
    if (attention.period == Attention::kNever) return end;
    const double phase = std::fmod(0.618 * r, 1.0);
    const double periods = std::ceil(now_ / attention.period - phase) + phase;
    return std::clamp(periods * attention.period, now_, end);
  }

  void attend(int r) {
    const Seconds at = next_look(r);
    if (at <= now_) return advance(r);
    Rank& rank = ranks_[index(r)];
    if (!rank.will_look) add({at, 0, Event::Kind::look, r, 0, schedule::kNoStep});
    rank.will_look = true;
  }

  void arrive(const Event& event) {
    const Step& step = ranks_[index(event.rank)].runs[event.collective].plan->steps[index(event.step)];
    Channel& channel = channels_[{event.collective, event.rank, step.peer}];
    channel.sent[event.message].arrived = true;
    match(channel, event.message, event.collective, step.peer);
    attend(step.peer);
  }

  // Finishes the receive of message k, if it is posted and the message is there.
  void match(const Channel& channel, std::size_t k, std::size_t collective, int receiver) {
    if (k >= channel.posted.size() || k >= channel.sent.size() || !channel.sent[k].arrived) return;
    const StepId step = channel.posted[k];
    ANNULET_EXPECTS(ranks_[index(receiver)].runs[collective].plan->steps[index(step)].count() == channel.sent[k].count,
                    "the k-th send meets a receive of its size");
    finish(receiver, collective, step);
  }

  void finish(int r, std::size_t collective, StepId step) {
    Run& run = ranks_[index(r)].runs[collective];
    --run.remaining;
    for (const StepId dependent : run.dependents[index(step)]) {
      const Action action = run.plan->steps[index(dependent)].action;
      const bool computes = action == Action::combine || action == Action::copy;
      if (--run.waiting[index(dependent)] == 0 && computes) run.computable.push_back(dependent);
    }
  }

  // Starts everything that rank r can start now.
  void advance(int r) {
    Rank& rank = ranks_[index(r)];
    while (admit(rank) || retire(rank, r)) {
    }
    for (bool posted = true; posted;) {
      posted = false;
      for (const std::size_t c : rank.active) posted |= post_receive(r, c);
    }
    for (const std::size_t c : rank.active) {
      while (send(r, c)) {
      }
      combine(r, c);
    }
    if (retire(rank, r)) advance(r);
  }

  bool admit(Rank& rank) const {
    if (rank.queued.empty() || rank.active.size() == static_cast<std::size_t>(options_.active)) return false;
    rank.active.push_back(rank.queued.front());
    rank.queued.pop_front();
    return true;
  }

  bool retire(Rank& rank, int r) {
    const auto done = std::find_if(rank.active.begin(), rank.active.end(),
                                   [&](std::size_t c) { return rank.runs[c].remaining == 0; });
    if (done == rank.active.end()) return false;
    ends_[*done][index(r)] = now_;
    rank.active.erase(done);
    return true;
  }

  bool post_receive(int r, std::size_t c) {
    Run& run = ranks_[index(r)].runs[c];
    if (run.next_receive == run.receives.size()) return false;
    const StepId step = run.receives[run.next_receive];
    if (run.waiting[index(step)] > 0) return false;
    ++run.next_receive;
    Channel& channel = channels_[{c, run.plan->steps[index(step)].peer, r}];
    channel.posted.push_back(step);
    match(channel, channel.posted.size() - 1, c, r);
    return true;
  }

  // Posts the next send, if it may be posted.
  bool send(int r, std::size_t c) {
    Run& run = ranks_[index(r)].runs[c];
    if (run.next_send == run.sends.size() || run.sending == options_.window) return false;
    const StepId id = run.sends[run.next_send];
    if (run.waiting[index(id)] > 0) return false;
    ++run.next_send, ++run.sending;
    const Step& step = run.plan->steps[index(id)];
    const Bytes size = bytes(c, step.count());
    Channel& channel = channels_[{c, r, step.peer}];
    channel.sent.push_back({step.count()});
    const Outgoing message{r, c, id, channel.sent.size() - 1, size, size};
    const int node = network_.node_of(r);
    if (node == network_.node_of(step.peer)) {
      const Link& link = network_.inside;
      leave(message, link, ports_[index(r)].take(now_, link, size, size, true));
    } else {
      Card& card = cards_[index(node)];
      const bool idle = card.idle();
      card.add(r, step.peer, message);
      if (idle) carry(node);
    }
    return true;
  }

  void leave(const Outgoing& message, const Link& link, Seconds left) {
    add({left, 0, Event::Kind::left, message.rank, message.collective, message.step});
    Seconds arrives =
        left + link.latency(message.bytes) + 2 * (collectives_[message.collective].handling * message.bytes);
    if (&link == &network_.between) {
      arrives = std::max({arrives, core_[index(message.rank)], core_[index(peer_of(message))]});
    }
    add({arrives, 0, is_busy() ? Event::Kind::due : Event::Kind::arrived, message.rank, message.collective,
         message.step, message.message});
  }

  // What a link carries both ways at its full rate, its cores carry: a byte takes them half of its time at most.
  static SecondsPerByte bounded_moving(const Link& link) {
    return SecondsPerByte(std::min(link.moving.value(), link.beta.value() / 2));
  }

  void carry(int node) {
    Card& card = cards_[index(node)];
    const Seconds left = card.next(now_, network_.between);
    for (const int r : {card.serves().rank, peer_of(card.serves())}) {
      core_[index(r)] = std::max(core_[index(r)], now_) + moving_ * card.piece();
    }
    add({left, 0, Event::Kind::carried, node, 0, schedule::kNoStep});
  }

  int peer_of(const Outgoing& message) const {
    return ranks_[index(message.rank)].runs[message.collective].plan->steps[index(message.step)].peer;
  }

  void carried(int node) {
    Card& card = cards_[index(node)];
    if (const auto message = card.carried()) leave(*message, network_.between, now_);
    if (!card.idle()) carry(node);
  }

  void combine(int r, std::size_t c) {
    Rank& rank = ranks_[index(r)];
    Run& run = rank.runs[c];
    if (rank.busy || run.computable.empty()) return;
    const StepId step = run.computable.front();
    run.computable.pop_front();
    rank.busy = true;
    const Seconds time = network_.inside.gamma * bytes(c, run.plan->steps[index(step)].count());
    const Seconds end = network_.inside.core_is_port ? ports_[index(r)].occupy(now_, time) : now_ + time;
    add({end, 0, Event::Kind::combined, r, c, step});
  }

  Bytes bytes(std::size_t collective, Elements count) const { return collectives_[collective].element * count; }

  std::span<const LaunchedCollective> collectives_;
  Network network_;
  SimulationOptions options_;
  std::vector<Rank> ranks_;
  std::vector<Port> ports_;  // [rank], for what stays inside its node
  std::vector<Card> cards_;  // [node]
  const SecondsPerByte moving_ = bounded_moving(network_.between);
  std::vector<Seconds> core_;                                      // [rank] done with bytes to and from other nodes
  std::map<std::tuple<std::size_t, int, int>, Channel> channels_;  // collective, from, to
  std::vector<std::vector<Seconds>> ends_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t created_ = 0;
  Seconds now_{0};
};

}  // namespace

std::vector<std::vector<Seconds>> simulate(std::span<const LaunchedCollective> collectives, const Network& network,
                                           const SimulationOptions& options) {
  return Simulation(collectives, network, options).run();
}

}  // namespace annulet::cost
