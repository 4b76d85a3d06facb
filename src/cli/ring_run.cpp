#include "ring_run.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>

#include "annulet/base/error.hpp"
#include "annulet/collectives/round_by_round.hpp"
#include "annulet/comm/in_process.hpp"
#include "annulet/comm/mpi_transport.hpp"
#include "annulet/comm/native_collectives.hpp"
#include "annulet/schedule/rounds.hpp"
#include "annulet/train/agree.hpp"

namespace annulet::cli {
namespace {

using collectives::RoundByRound;
using Vector = std::vector<float>;

Vector floats(std::span<const std::byte> bytes) {
  Vector values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// What of its input rank `rank` has at the start: outside of its piece an all-gather begins with nothing.
void keep_what_is_there(Vector& input, const SteppedCollective& stepped, int rank) {
  for (std::size_t e = 0; e < input.size(); ++e) {
    if (stepped.promise.before(rank, static_cast<Elements>(e)) == 0) input[e] = 0;
  }
}

// One rank's run, and the same again in one go.
class RankRun {
 public:
  RankRun(std::unique_ptr<comm::Transport> transport, Seconds deadline, const schedule::Plan& plan,
          std::span<const int> rounds, int count, const Vector& input)
      : run_(std::move(transport), {collectives::Driver::polling, deadline}, plan, rounds, count,
             collectives::sum_of<float>(), std::as_bytes(std::span(input))),
        count_(count) {
    keep();
  }

  RoundByRound& run() { return run_; }
  int count() const { return count_; }
  void keep() { kept_.push_back(floats(run_.data())); }
  const std::vector<Vector>& kept() const { return kept_; }

 private:
  RoundByRound run_;
  int count_;
  std::vector<Vector> kept_;  // [round]
};

// What one rank knows of its result.
struct RankVerdict {
  bool same_bits = true;
  bool close = true;  // up to rounding
  bool same_at_once = true;
  bool bytes_agree = true;
};

bool same(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

// `sum` and `magnitude`: the sum of everyone's vectors, and of their absolute values.
RankVerdict judge(const SteppedCollective& stepped, int rank, const Vector& result, const Vector& at_once,
                  const Vector& sum, const Vector& magnitude) {
  RankVerdict verdict;
  const double rounding = static_cast<double>(stepped.ranks()) * std::ldexp(1.0, -23);
  for (std::size_t e = 0; e < result.size(); ++e) {
    if (stepped.promise.after(rank, static_cast<Elements>(e)) == 0) continue;
    verdict.same_bits &= same(result[e], sum[e]);
    verdict.same_at_once &= same(result[e], at_once[e]);
    verdict.close &= std::abs(static_cast<double>(result[e]) - static_cast<double>(sum[e])) <=
                     rounding * static_cast<double>(magnitude[e]);
  }
  return verdict;
}

// Nothing, or what is wrong.
std::string objection(const RankVerdict& verdict, int rank, const SteppedCollective& stepped, const char* beside) {
  if (!verdict.bytes_agree) return fmt::format("rank {}: the transport counted other bytes than were planned", rank);
  if (!verdict.same_at_once) return fmt::format("rank {}: round by round and at once give other bits", rank);
  if (!verdict.close) return fmt::format("rank {}: {} does not agree with {}", rank, stepped.name, beside);
  return {};
}

Vector absolute(Vector values) {
  for (float& value : values) value = std::abs(value);
  return values;
}

std::vector<double> doubles(const Vector& values) { return {values.begin(), values.end()}; }

// All ranks in this thread, taking steps in turns.
std::deque<RankRun> run_in_turns(const SteppedCollective& stepped, const schedule::Rounds& rounds,
                                 comm::InProcessNetwork& network, const std::vector<Vector>& inputs) {
  std::deque<RankRun> ranks;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    ranks.emplace_back(network.connect(static_cast<int>(r)), Seconds(60), stepped.plans[r], rounds.of[r], rounds.count,
                       inputs[r]);
  }
  for (int round = 1; round <= rounds.count; ++round) {
    for (RankRun& rank : ranks) rank.run().launch(round);
    for (bool running = true; running;) {
      running = false;
      for (RankRun& rank : ranks) rank.run().poll(), running |= !rank.run().finished(round);
    }
    for (RankRun& rank : ranks) rank.keep();
  }
  return ranks;
}

// The whole plan as one round.
schedule::Rounds at_once(const schedule::Rounds& rounds) {
  schedule::Rounds one = rounds;
  one.count = std::min(rounds.count, 1);
  for (auto& steps : one.of) std::fill(steps.begin(), steps.end(), 1);
  return one;
}

}  // namespace

std::vector<float> example_input(int rank, Elements elements) {
  Vector input(static_cast<std::size_t>(elements));
  for (std::size_t e = 0; e < input.size(); ++e)
    input[e] = static_cast<float>(10 * (rank + 1)) + static_cast<float>(e % 10);
  return input;
}

RingRun run_here(const SteppedCollective& stepped, const report::Replay& replay,
                 const std::vector<std::vector<float>>& given) {
  std::vector<Vector> inputs = given;
  Vector sum(static_cast<std::size_t>(stepped.elements())), magnitude = sum;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    keep_what_is_there(inputs[r], stepped, static_cast<int>(r));
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += inputs[r][e], magnitude[e] += std::abs(inputs[r][e]);
  }
  const schedule::Rounds rounds = schedule::rounds_of(stepped.plans);
  comm::InProcessNetwork network(stepped.ranks()), other(stepped.ranks());
  auto ranks = run_in_turns(stepped, rounds, network, inputs);
  auto whole = run_in_turns(stepped, at_once(rounds), other, inputs);
  RingRun run{report::ReplayValues(static_cast<std::size_t>(rounds.count) + 1), Agreement::same_bits};
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const int rank = static_cast<int>(r);
    RankVerdict verdict = judge(stepped, rank, ranks[r].kept().back(), whole[r].kept().back(), sum, magnitude);
    verdict.bytes_agree =
        ranks[r].run().sent() == replay.frames.back().sent[r] && whole[r].run().sent() == ranks[r].run().sent();
    if (const std::string wrong = objection(verdict, rank, stepped, "a plain sum"); !wrong.empty())
      throw RunError({wrong});
    if (!verdict.same_bits) run.agreement = Agreement::rounding;
    run.counted += ranks[r].run().sent();
    for (std::size_t k = 0; k < run.values.size(); ++k) run.values[k].push_back(doubles(ranks[r].kept()[k]));
  }
  return run;
}

namespace {

struct WorldRun {
  std::vector<Vector> kept;
  Bytes sent;
};

// This rank's part; collective.
WorldRun run_rank(const comm::Communicator& world, Seconds deadline, const schedule::Plan& plan,
                  const schedule::Rounds& rounds, const Vector& input) {
  RankRun rank(comm::make_mpi_transport(world), deadline, plan, rounds.of[static_cast<std::size_t>(world.rank())],
               rounds.count, input);
  for (int round = 1; round <= rounds.count; ++round) {
    rank.run().launch(round);
    rank.run().wait(round);
    rank.keep();
  }
  return {rank.kept(), rank.run().sent()};
}

Vector native_sum(const comm::Communicator& world, Vector values) {
  comm::NativeCollectives(world, comm::Number::float32).all_reduce(std::as_writable_bytes(std::span(values)));
  return values;
}

// [round, rank, element] on rank 0; collective.
report::ReplayValues gather_values(const comm::Communicator& world, const std::vector<Vector>& kept) {
  Vector flat;
  for (const Vector& round : kept) flat.insert(flat.end(), round.begin(), round.end());
  const auto all = world.gather(std::as_bytes(std::span(flat)), 0);
  report::ReplayValues values(all.empty() ? 0 : kept.size());
  for (const auto& bytes : all) {
    const Vector rank = floats(bytes);
    const std::size_t size = kept.front().size();
    for (std::size_t k = 0; k < values.size(); ++k) {
      const auto first = rank.begin() + static_cast<std::ptrdiff_t>(k * size);
      values[k].emplace_back(first, first + static_cast<std::ptrdiff_t>(size));
    }
  }
  return values;
}

}  // namespace

RingRun run_on_world(const comm::Communicator& world, Seconds deadline, const SteppedCollective& stepped,
                     const report::Replay& replay, std::vector<float> input) {
  const auto me = static_cast<std::size_t>(world.rank());
  keep_what_is_there(input, stepped, world.rank());
  const schedule::Rounds rounds = schedule::rounds_of(stepped.plans);
  const WorldRun stepwise = run_rank(world, deadline, stepped.plans[me], rounds, input);
  const WorldRun whole = run_rank(world, deadline, stepped.plans[me], at_once(rounds), input);
  const Vector sum = native_sum(world, input), magnitude = native_sum(world, absolute(input));
  RankVerdict verdict = judge(stepped, world.rank(), stepwise.kept.back(), whole.kept.back(), sum, magnitude);
  verdict.bytes_agree = stepwise.sent == replay.frames.back().sent[me] && whole.sent == stepwise.sent;
  train::agree_on(world, [&] {
    const std::string wrong = objection(verdict, world.rank(), stepped, "MPI_Allreduce");
    if (!wrong.empty()) throw RunError({wrong});
  });
  const bool all_same = world.minimum(verdict.same_bits ? 1 : 0) == 1;
  RingRun run{gather_values(world, stepwise.kept), all_same ? Agreement::same_bits : Agreement::rounding};
  const std::int64_t mine[] = {stepwise.sent.value()};
  for (const std::int64_t bytes : world.all_gather(mine)) run.counted += Bytes(bytes);
  return run;
}

}  // namespace annulet::cli
