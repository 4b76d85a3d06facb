#include "annulet/cost/step.hpp"

#include <algorithm>

#include "annulet/base/error.hpp"
#include "annulet/cost/closed_form.hpp"
#include "annulet/cost/simulate.hpp"
#include "annulet/schedule/recursive_doubling.hpp"

namespace annulet::cost {
namespace {

constexpr int kDelayRounds = 20;  // of delaying backward by what communication takes of its core; three are usual
constexpr Seconds kSettled{1e-9};

// All ranks' plans of one bucket.
std::vector<schedule::Plan> plans_of(const StepInput& input, const schedule::Bucket& bucket) {
  std::vector<schedule::Plan> plans;
  for (int r = 0; r < input.world; ++r) {
    plans.push_back(schedule::bucket_plan(r, input.world, bucket.elements.count, input.element, input.sync));
  }
  return plans;
}

// `slowdown` as in StepInput.
LaunchedCollective collective(const std::vector<schedule::Plan>& plans, Bytes element, Seconds launched,
                              const std::vector<double>& slowdown = {}) {
  LaunchedCollective result{{}, element, std::vector<Seconds>(plans.size(), launched)};
  for (std::size_t r = 0; r < slowdown.size(); ++r) result.launched[r] *= slowdown[r];
  for (const schedule::Plan& plan : plans) result.plans.push_back(&plan);
  return result;
}

class Predictor {
 public:
  explicit Predictor(const StepInput& input)
      : input_(input), buckets_(schedule::gradient_buckets(input.tensors, input.element, input.sync)) {
    ANNULET_EXPECTS(input.profile.ready.size() == input.tensors.size(), "a profile has an instant for each tensor");
    ANNULET_EXPECTS(input.world > 0, "a step is of at least one rank");
    ANNULET_EXPECTS(input.slowdown.empty() || input.slowdown.size() == static_cast<std::size_t>(input.world),
                    "every rank has a slowdown, or none");
    ANNULET_EXPECTS(input.slowdown.empty() || !shares_the_core(), "stragglers have their core to themselves");
    if (!input.slowdown.empty()) slowest_ = *std::ranges::max_element(input.slowdown);
    Bytes checked{0};
    for (const schedule::Bucket& bucket : buckets_) {
      checked += input.element * bucket.elements.count;
      const auto first = input.profile.ready.begin() + static_cast<std::ptrdiff_t>(bucket.first_tensor);
      const auto end = input.profile.ready.begin() + static_cast<std::ptrdiff_t>(bucket.end_tensor);
      ready_.push_back(*std::max_element(first, end) + check(checked));
      core_.push_back(core_time(bucket));
    }
    backward_ends_ = input.profile.backward_ends + check(checked);
    if (input.closed_form || !can_simulate()) return;
    for (const schedule::Bucket& bucket : buckets_) plans_.push_back(plans_of(input, bucket));
  }

  bool can_simulate() const { return simulated_steps() <= input_.most_simulated; }

  StepPrediction run() {
    launch_at_first();
    ends_ = bucket_ends();
    const bool delays = shares_the_core();
    for (int round = 0; delays && round < kDelayRounds && delay_launches() > kSettled; ++round) ends_ = bucket_ends();
    return result(delays ? delayed(backward_ends_) : backward_ends_);
  }

 private:
  // A world of one checks nothing.
  Seconds check(Bytes bytes) const { return input_.world > 1 ? input_.profile.check * bytes : Seconds(0); }

  CollectiveShape shape_of(const schedule::Bucket& bucket) const {
    const Bytes bytes = input_.element * bucket.elements.count;
    const schedule::Execution execution = schedule::bucket_execution(bytes, input_.sync);
    const bool reproducible = input_.sync.micro_shards > 0;  // everyone to everyone, too
    return {schedule::Collective::all_reduce,
            reproducible ? schedule::Algorithm::direct : execution.algorithm,
            bytes,
            input_.world,
            input_.element,
            execution.segment};
  }

  // What a bucket takes of rank 0's core: what it sends and receives is moved, what it receives to add is added.
  Seconds core_time(const schedule::Bucket& bucket) const {
    const Elements n = bucket.elements.count;
    const Elements sent = schedule::bucket_sends(0, input_.world, n, input_.element, input_.sync);
    const SecondsPerByte known = input_.network.ring_link().moving;
    const SecondsPerByte moving = known.value() > 0 ? known : input_.profile.moving;
    const Link adding{Seconds(0), Seconds(0), SecondsPerByte(0), input_.profile.adding};
    return moving * (input_.element * (2 * sent)) + predicted_time(shape_of(bucket), adding).reduction;
  }

  std::size_t simulated_steps() const {
    std::size_t steps = 0;
    for (const schedule::Bucket& bucket : buckets_) steps += steps_of(bucket);
    return steps;
  }

  // Of all ranks' plans, more or less: a ring is counted without making it, which is long where ranks are many.
  std::size_t steps_of(const schedule::Bucket& bucket) const {
    const auto world = static_cast<std::size_t>(input_.world);
    const CollectiveShape shape = shape_of(bucket);
    if (shape.algorithm != schedule::Algorithm::ring) {
      return world *
             schedule::bucket_plan(0, input_.world, bucket.elements.count, input_.element, input_.sync).steps.size();
    }
    const Elements segment = std::max<Elements>(1, shape.segment.value() / input_.element.value());
    const auto segments = static_cast<std::size_t>(
        schedule::segments(schedule::chunk(bucket.elements.count, input_.world, input_.world - 1), segment));
    return 5 * world * (world - 1) * segments;
  }

  bool shares_the_core() const {
    return input_.driver == Driver::polling || (input_.driver == Driver::thread && !input_.spare_core);
  }

  Attention attention() const {
    if (!shares_the_core()) return {};
    return {input_.profile.pulse, ends_.empty() ? backward_ends_ : delayed(backward_ends_)};
  }

  void launch_at_first() {
    launched_ = ready_;
    if (input_.driver == Driver::blocking) launched_.assign(ready_.size(), backward_ends_);
  }

  std::vector<Seconds> bucket_ends() const {
    std::vector<Seconds> ends;
    if (input_.world == 1) {
      for (const Seconds launched : launched_) ends.push_back(slowest_ * launched);
      return ends;
    }
    if (plans_.empty()) {
      for (std::size_t b = 0; b < buckets_.size(); ++b) {
        const Seconds launched = slowest_ * launched_[b];
        const Seconds begin = ends.empty() ? launched : std::max(launched, ends.back());
        ends.push_back(begin + total_time(shape_of(buckets_[b]), input_.network));
      }
      return ends;
    }
    std::vector<LaunchedCollective> collectives;
    for (std::size_t b = 0; b < plans_.size(); ++b) {
      collectives.push_back(collective(plans_[b], input_.element, launched_[b], input_.slowdown));
    }
    for (const auto& of_ranks : simulate(collectives, input_.network, {.attention = attention()}))
      ends.push_back(input_.slowdown.empty() ? of_ranks[0] : *std::ranges::max_element(of_ranks));
    return ends;
  }

  // What communication has taken of the core until `at`: each bucket takes its part evenly from its start to its end.
  Seconds taken(Seconds at) const {
    Seconds sum{0};
    for (std::size_t b = 0; b < ends_.size(); ++b) {
      const Seconds length = ends_[b] - launched_[b];
      const double part = length.count() > 0 ? std::clamp((at - launched_[b]) / length, 0.0, 1.0) : 1.0;
      if (at > launched_[b]) sum += part * core_[b];
    }
    return sum;
  }

  // When the core has computed for `work`: the least t with t = work + taken(t).
  Seconds delayed(Seconds work) const {
    Seconds at = work;
    for (int i = 0; i < 200; ++i) {
      const Seconds next = work + taken(at);
      if (next - at <= kSettled) return next;
      at = next;
    }
    return at;
  }

  // By how much the launch moved that moved most.
  Seconds delay_launches() {
    std::vector<Seconds> launched;
    Seconds moved{0};
    for (std::size_t b = 0; b < ready_.size(); ++b) {
      launched.push_back(delayed(ready_[b]));
      moved = std::max({moved, launched[b] - launched_[b], launched_[b] - launched[b]});
    }
    launched_ = std::move(launched);
    return moved;
  }

  Seconds control_time() const {
    std::vector<schedule::Plan> plans;
    if (input_.world > 1024) {
      return schedule::recursive_doubling_steps(input_.world) *
             (input_.network.ring_link().alpha + input_.network.ring_link().beta * input_.control);
    }
    for (int r = 0; r < input_.world; ++r) {
      plans.push_back(schedule::recursive_doubling_all_reduce(r, input_.world, 1));
    }
    const LaunchedCollective record = collective(plans, input_.control, Seconds(0));
    return simulate(std::span(&record, 1), input_.network)[0][0];
  }

  StepPrediction result(Seconds backward_ends) const {
    StepPrediction prediction;
    prediction.backward_begins = slowest_ * input_.profile.backward_begins;
    prediction.backward_ends = slowest_ * backward_ends;
    Seconds all_summed = prediction.backward_ends;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const Seconds ready = input_.driver == Driver::blocking ? ready_[b] : launched_[b];
      prediction.buckets.push_back(
          {input_.element * buckets_[b].elements.count, slowest_ * ready, slowest_ * launched_[b], ends_[b]});
      all_summed = std::max(all_summed, ends_[b]);
    }
    prediction.exposed = all_summed - prediction.backward_ends;
    prediction.control = control_time();
    prediction.optimizer = slowest_ * (input_.profile.norm / input_.world + input_.profile.optimizer);
    prediction.step = all_summed + prediction.control + prediction.optimizer;
    return prediction;
  }

  const StepInput& input_;
  std::vector<schedule::Bucket> buckets_;
  std::vector<std::vector<schedule::Plan>> plans_;  // [bucket][rank]; empty unless simulated
  std::vector<Seconds> ready_;                      // [bucket] with nothing taken from the core
  std::vector<Seconds> core_;                       // [bucket] what it takes of the core
  std::vector<Seconds> launched_, ends_;            // [bucket]
  Seconds backward_ends_{0};
  double slowest_ = 1;
};

}  // namespace

bool can_simulate(const StepInput& input) { return Predictor(input).can_simulate(); }

StepPrediction predict_step(const StepInput& input) { return Predictor(input).run(); }

}  // namespace annulet::cost
