#include "annulet/measure/moving.hpp"

#include <algorithm>
#include <vector>

#include "annulet/base/aligned.hpp"
#include "annulet/base/statistics.hpp"
#include "annulet/collectives/engine.hpp"
#include "annulet/measure/calibrate.hpp"
#include "annulet/schedule/ring.hpp"

namespace annulet::measure {
namespace {

constexpr Seconds kBetweenPolls{100e-6};
constexpr int kTurns = 16;       // of quiet work, of which the quickest is taken
constexpr double kHeldUp = 4;    // times its quiet length: another process had the core
constexpr Seconds kSlice{2e-3};  // no look takes as long, unless another process had the core

// Work that takes about kBetweenPolls where nothing disturbs it.
class Work {
 public:
  Work() {
    const Instant begin = Clock::now();
    while (Clock::now() - begin < kBetweenPolls) {
      compute(1);
      ++passes_;
    }
  }

  Seconds run() {
    const Instant begin = Clock::now();
    compute(passes_);
    return Clock::now() - begin;
  }

  Seconds quiet() {
    Seconds best = Seconds::max();
    for (int turn = 0; turn < kTurns; ++turn) best = std::min(best, run());
    return best;
  }

 private:
  static constexpr std::size_t kFloats = 64 << 10;  // like a layer's tiles they live in the caches, which data pass too

  void compute(int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      for (std::size_t i = 0; i < kFloats; ++i) values_[i] = 0.5F * values_[i] + factors_[i];
    }
  }

  AlignedVector<float> values_ = AlignedVector<float>(kFloats), factors_ = AlignedVector<float>(kFloats, 1.0F);
  int passes_ = 0;
};

// What a rank that computes loses in one run of the operation: to looks at its messages, and to what the kernel does
// for the network in between, on whose core it likes.
struct Round {
  Seconds looking{0}, quickest_look = Seconds::max(), working{0};
  int looks = 0;

  void look(Seconds length) {
    if (length > kSlice) return;
    ++looks;
    looking += length, quickest_look = std::min(quickest_look, length);
  }

  // Less the looks that find nothing, of which there are the more the slower bytes come.
  Seconds lost(Seconds idle_look) const { return looking - looks * idle_look + working; }
};

// Work that another process held up counts as if it had lost what the rest did.
Round run_round(collectives::Engine& engine, collectives::OperationId ring, Seconds deadline) {
  Work work;
  const Seconds quiet = work.quiet();
  Round round;
  const Instant begin = Clock::now();
  engine.launch(ring);
  round.look(Clock::now() - begin);
  Seconds lost{0};
  int turns = 0, counted = 0;
  while (!engine.finished(ring)) {
    const Seconds took = work.run();
    ++turns;
    if (took < kHeldUp * quiet) lost += std::max(Seconds(0), took - quiet), ++counted;
    const Instant look = Clock::now();
    engine.poll();
    round.look(Clock::now() - look);
    if (look - begin > deadline) engine.wait(ring);  // which says what is stuck
  }
  round.working = counted > 0 ? lost * turns / counted : Seconds(0);
  return round;
}

}  // namespace

cost::SecondsPerByte moving_pace(const TransportFactory& make_transport, const MovingOptions& options) {
  auto transport = make_transport();
  const int world = transport ? transport->world() : 1, rank = transport ? transport->rank() : 0;
  if (world == 1) return cost::SecondsPerByte(0);
  AlignedVector<float> data(static_cast<std::size_t>(options.bytes.value()) / sizeof(float));
  const Elements elements = std::ssize(data);
  const schedule::RingShape shape{rank, world, elements, options.segment, options.slots};
  collectives::Engine engine(std::move(transport), {collectives::Driver::polling, options.deadline});
  const collectives::OperationId ring =
      engine.declare({"price of moving", comm::Purpose::other, collectives::sum_of<float>(),
                      std::make_shared<const schedule::Plan>(schedule::ring_all_reduce(shape)),
                      std::as_writable_bytes(std::span(data))});
  std::vector<Round> rounds;
  for (int round = 0; round < options.rounds; ++round) rounds.push_back(run_round(engine, ring, options.deadline));
  const Seconds idle_look = std::ranges::min(rounds, {}, &Round::quickest_look).quickest_look;
  std::vector<Seconds> lost;
  for (const Round& round : rounds) lost.push_back(round.lost(idle_look));
  const Bytes element(sizeof(float));
  const Bytes moved = element * (2 * schedule::ring_all_reduce_sends(elements, world, rank));
  const Bytes added = element * (elements - schedule::chunk(elements, world, rank).count);
  const Seconds adding = reduction_pace(options.segment, options.slots) * added;
  return cost::SecondsPerByte(std::max(0.0, (*median(lost) - adding).count()) / moved.as_double());
}

}  // namespace annulet::measure
