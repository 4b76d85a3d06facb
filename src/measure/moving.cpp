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

void compute_for(Seconds length) {
  const Instant begin = Clock::now();
  while (Clock::now() - begin < length) {
  }
}

Seconds polls_of_a_round(collectives::Engine& engine, collectives::OperationId ring, Seconds deadline) {
  const Instant begin = Clock::now();
  engine.launch(ring);
  engine.poll();
  Seconds polls = Clock::now() - begin;
  while (!engine.finished(ring)) {
    compute_for(kBetweenPolls);
    const Instant poll = Clock::now();
    engine.poll();
    polls += Clock::now() - poll;
    if (poll - begin > deadline) engine.wait(ring);  // which says what is stuck
  }
  return polls;
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
  std::vector<Seconds> rounds;
  for (int round = 0; round < options.rounds; ++round)
    rounds.push_back(polls_of_a_round(engine, ring, options.deadline));
  const Bytes element(sizeof(float));
  const Bytes moved = element * (2 * schedule::ring_all_reduce_sends(elements, world, rank));
  const Bytes added = element * (elements - schedule::chunk(elements, world, rank).count);
  const Seconds adding = reduction_pace(options.segment, options.slots) * added;
  return cost::SecondsPerByte(std::max(0.0, (*median(rounds) - adding).count()) / moved.as_double());
}

}  // namespace annulet::measure
