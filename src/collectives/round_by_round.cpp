#include "annulet/collectives/round_by_round.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "annulet/base/error.hpp"
#include "annulet/schedule/rounds.hpp"

namespace annulet::collectives {

RoundByRound::RoundByRound(std::unique_ptr<comm::Transport> transport, const EngineOptions& options,
                           const schedule::Plan& plan, std::span<const int> rounds, int count,
                           const ElementType& element, std::span<const std::byte> input)
    : memory_(static_cast<std::size_t>(plan.elements + plan.scratch) * element.size),
      data_bytes_(static_cast<std::size_t>(plan.elements) * element.size),
      engine_(std::move(transport), options) {
  ANNULET_EXPECTS(input.size() == data_bytes_, "the input is what the data of the plan hold");
  std::ranges::copy(input, memory_.begin());
  for (int round = 1; round <= count; ++round) {
    auto part = std::make_shared<const schedule::Plan>(schedule::part_of(plan, rounds, round == 1 ? 0 : round, round));
    operations_.push_back(engine_.declare(
        {fmt::format("round {}", round), comm::Purpose::other, element, std::move(part), std::span(memory_)}));
  }
}

void RoundByRound::launch(int round) { engine_.launch(id(round)); }
void RoundByRound::wait(int round) { engine_.wait(id(round)); }
void RoundByRound::poll() { engine_.poll(); }
bool RoundByRound::finished(int round) const { return engine_.finished(id(round)); }

std::span<const std::byte> RoundByRound::data() const { return std::span(memory_).first(data_bytes_); }
Bytes RoundByRound::sent() const { return engine_.traffic()[comm::Purpose::other]; }

}  // namespace annulet::collectives
