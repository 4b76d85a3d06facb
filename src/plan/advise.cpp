#include "annulet/plan/advise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "annulet/base/error.hpp"

namespace annulet::plan {
namespace {

using schedule::Algorithm;
using schedule::Collective;

const std::vector<Bytes> kBuckets{Bytes(1 << 20), Bytes(4 << 20), Bytes(25 << 20), Bytes(100 << 20), Bytes(400 << 20)};
constexpr double kSmall = 0.02;

// A collective of `bytes`, bucket after bucket; and the last bucket alone.
struct Price {
  Seconds whole{0}, last{0};
};

class Adviser {
 public:
  explicit Adviser(const AdviceQuestion& q)
      : q_(q),
        links_(cost::links_of(q.step.machine, q.step.ranks)),
        parameters_(q.step.work.parameters()),
        sequence_(std::max<Elements>(1, q.architecture.context)) {}

  Advice run() {
    Advice advice;
    for (const bool recompute : {false, true}) {
      for (const Elements micro : micro_batches()) {
        for (int stage = 0; stage <= 3; ++stage) {
          for (const Bytes bucket : q_.buckets.empty() ? kBuckets : q_.buckets) {
            for (const Algorithm algorithm : algorithms(stage)) {
              Candidate c;
              c.stage = stage, c.bucket = bucket, c.algorithm = algorithm, c.recompute = recompute;
              c.micro_batch = micro, c.accumulated = (sequences() + micro - 1) / micro;
              price(c), weigh(c);
              (fits(c) ? advice.feasible : advice.infeasible).push_back(std::move(c));
            }
          }
        }
      }
    }
    keep_best(advice.feasible), keep_best(advice.infeasible);
    std::ranges::stable_sort(advice.feasible, {}, [](const Candidate& c) { return std::tuple(c.step, c.needed()); });
    std::ranges::stable_sort(advice.infeasible, {}, [](const Candidate& c) { return std::tuple(c.needed(), c.step); });
    return advice;
  }

 private:
  // Of candidates that differ in bucket and algorithm only: the fastest.
  static void keep_best(std::vector<Candidate>& candidates) {
    const auto kind = [](const Candidate& c) { return std::tuple(c.stage, c.micro_batch, c.recompute); };
    std::ranges::stable_sort(candidates, {}, [&](const Candidate& c) { return std::pair(kind(c), c.step); });
    const auto rest = std::ranges::unique(candidates, {}, kind);
    candidates.erase(rest.begin(), rest.end());
  }

  // Sequences of the largest rank.
  Elements sequences() const {
    const Elements share = (q_.step.tokens + q_.step.ranks - 1) / q_.step.ranks;
    return std::max<Elements>(1, (share + sequence_ - 1) / sequence_);
  }

  std::vector<Elements> micro_batches() const {
    std::vector<Elements> sizes;
    for (Elements size = 1; size < sequences(); size *= 2) sizes.push_back(size);
    sizes.push_back(sequences());
    return sizes;
  }

  std::vector<Algorithm> algorithms(int stage) const {
    auto algorithms = schedule::algorithms_of(stage == 0 ? Collective::all_reduce : Collective::reduce_scatter);
    std::erase(algorithms, Algorithm::direct);  // the model knows no receiver's port, where its messages meet
    return algorithms;
  }

  // The all-gather that goes with a reduce-scatter: halving's mirror is doubling.
  static Algorithm gather_of(Algorithm algorithm) {
    return algorithm == Algorithm::recursive_halving ? Algorithm::recursive_doubling : algorithm;
  }

  Price priced(Collective collective, Algorithm algorithm, std::int64_t element, Bytes bucket) const {
    if (q_.step.ranks == 1) return {};
    const Elements most = std::max<Elements>(1, bucket.value() / element);
    const Elements full = parameters_ / most, rest = parameters_ % most;
    const auto time = [&](Elements n) {
      return cost::predicted_time({collective, algorithm, Bytes(n * element), q_.step.ranks, Bytes(element)}, links_)
          .total();
    };
    const Seconds last = time(rest > 0 ? rest : most);
    return {static_cast<double>(full) * time(most) + (rest > 0 ? last : Seconds(0)), last};
  }

  Seconds compute(const Candidate& c) const {
    const Rate rate = rate_of(q_.step);
    Flops flops = q_.step.work.per_token;
    if (c.recompute) flops += recomputation_per_token(q_.architecture, Recomputation::blocks);
    const double tokens = static_cast<double>(sequences() * sequence_);
    return Seconds(flops.value() * tokens / (rate.peak.value() * rate.efficiency));
  }

  // The head of the file has the formulas.
  Seconds exposed(const Candidate& c, Seconds computing) const {
    const auto k = static_cast<double>(c.accumulated);
    const Seconds forward = computing / 3 / k, backward = 2 * forward;
    if (c.stage == 0) {
      const Price a = priced(Collective::all_reduce, c.algorithm, q_.bytes.gradient, c.bucket);
      return std::max(a.last, a.whole - backward);
    }
    const Price s = priced(Collective::reduce_scatter, c.algorithm, q_.bytes.gradient, c.bucket);
    const Price g = priced(Collective::all_gather, gather_of(c.algorithm), q_.bytes.weight, c.bucket);
    const Seconds gathering = std::max(g.last, g.whole - forward);
    if (c.stage == 1) return std::max(s.last, s.whole - backward) + gathering;
    if (c.stage == 2) return s.last + k * std::max(Seconds(0), s.whole - backward) + gathering;
    return k * (gathering + std::max(s.last, g.whole + s.whole - backward));
  }

  void price(Candidate& c) const {
    const Seconds computing = compute(c);
    c.exposed = exposed(c, computing);
    c.step = computing + c.exposed;
    c.mfu = utilisation(q_.step, c.step);
    c.reason = c.exposed <= kSmall * c.step
                   ? (c.recompute ? "computes, some of it twice" : "computes; all else is hidden")
                   : fmt::format("waits {} for the network", to_text(c.exposed));
  }

  void weigh(Candidate& c) const {
    const StageMemory states = stage_memory(parameters_, q_.step.ranks, c.stage, q_.bytes);
    MemoryQuestion memory;
    memory.parameters = parameters_, memory.largest_layer = largest_layer(q_.architecture);
    memory.tied_layer = tied_layer(q_.architecture);
    memory.bytes = q_.bytes, memory.bucket = c.bucket;
    c.states = states.total(), c.in_flight = buckets_in_flight(memory, c.stage);
    c.activations =
        activations(q_.architecture, {.sequences = c.micro_batch,
                                      .sequence = sequence_,
                                      .element = Bytes(q_.bytes.weight),
                                      .dropout = false,
                                      .keeps_scores = false,
                                      .recomputation = c.recompute ? Recomputation::blocks : Recomputation::none})
            .total();
  }

  bool fits(Candidate& c) const {
    if (c.needed() <= q_.memory) return true;
    c.reason = fmt::format("lacks {}: states {}, activations {}, in flight {}", to_text(c.needed() - q_.memory),
                           to_text(c.states), to_text(c.activations), to_text(c.in_flight));
    return false;
  }

  const AdviceQuestion& q_;
  std::vector<cost::Link> links_;
  Elements parameters_, sequence_;
};

const std::vector<Column> kColumns{{"stage", "stage"},
                                   {"bucket", "bucket_bytes"},
                                   {"algorithm", "algorithm"},
                                   {"micro-batch", "micro_batch_sequences"},
                                   {"of", "accumulated"},
                                   {"recompute", "recompute"},
                                   {"needed", "needed_bytes"},
                                   {"step", "step_seconds"},
                                   {"MFU", "mfu"},
                                   {"why", "reason"}};

Table table_of(std::string key, std::string title, const std::vector<Candidate>& candidates, std::size_t most) {
  Table table{std::move(key), std::move(title), kColumns, {}};
  for (const Candidate& c : candidates) {
    if (table.rows.size() == most) break;
    table.rows.push_back({cell(std::int64_t{c.stage}),
                          {c.bucket.value(), binary(c.bucket)},
                          cell(std::string(schedule::to_text(c.algorithm))),
                          cell(c.micro_batch),
                          cell(c.accumulated),
                          {c.recompute, c.recompute ? "yes" : "no"},
                          cell(c.needed()),
                          cell(c.step),
                          percent(c.mfu),
                          cell(c.reason)});
  }
  return table;
}

void require_sense(const AdviceQuestion& q) {
  require_sense(q.step);
  if (q.memory > Bytes(0)) return;
  throw InputError({fmt::format("{}: no memory in [device]", q.step.machine_text()),
                    "what fits and what does not would be unknown", "Give --memory, say 80GB"});
}

}  // namespace

Advice advise(const AdviceQuestion& question) {
  require_sense(question);
  return Adviser(question).run();
}

Answer plan_advise(const AdviceQuestion& q) {
  const Advice advice = advise(q);
  Answer answer;
  const std::string what = fmt::format("{} on {} ranks of {} each, {} tokens a step", q.step.work.model, q.step.ranks,
                                       to_text(q.memory), cell(q.step.tokens).shown);
  answer.tables = {
      table_of("feasible", fmt::format("{}: {} candidates fit, the fastest first", what, advice.feasible.size()),
               advice.feasible, q.most),
      table_of("infeasible", fmt::format("{} candidates do not fit, the nearest first", advice.infeasible.size()),
               advice.infeasible, q.most)};
  answer.notes = {"micro-batch in sequences, `of`: micro-batches of a step; needed = states + activations + in flight",
                  "of each stage, micro-batch and recomputation the bucket and algorithm that make the fastest step"};
  if (advice.feasible.empty()) {
    answer.notes.push_back(
        "nothing fits: more ranks (stage 3 divides all states by them), or split the model itself, which data "
        "parallelism does not");
  }
  for (std::size_t i = 0; i < std::min(q.most, advice.feasible.size()); ++i) {
    const Candidate& c = advice.feasible[i];
    answer.explanations.push_back(
        {fmt::format("stage {}, bucket {}, {}, micro-batch {}", c.stage, binary(c.bucket),
                     schedule::to_text(c.algorithm), c.micro_batch),
         "compute + exposed, as annulet/plan/advise.hpp has it",
         fmt::format("exposed {}, {}", to_text(c.exposed), cost::to_text(network_of(q.step.machine, q.step.ranks))),
         to_text(c.step)});
  }
  return answer;
}

}  // namespace annulet::plan
