#include "annulet/schedule/recursive_doubling.hpp"

#include <bit>

namespace annulet::schedule {
namespace {

int largest_power_of_two(int world) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(world))); }

int rounds(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

}  // namespace

Plan recursive_doubling_all_reduce(int rank, int world, Elements elements) {
  PlanBuilder builder(rank, world, elements);
  const int power = largest_power_of_two(world), folded = world - power;
  const Region all{Place::data, {0, elements}};
  const Region slots[2] = {{Place::scratch, {0, elements}}, {Place::scratch, {elements, elements}}};

  const bool in_a_pair = rank < 2 * folded;
  if (in_a_pair && rank % 2 == 0) {  // gives its vector to the partner, gets the result back
    const StepId given = builder.send(rank + 1, all, {});
    builder.receive(rank + 1, all, {given});
    return std::move(builder).finish();
  }
  StepId added = kNoStep, slot_free[2] = {kNoStep, kNoStep};
  if (in_a_pair) {
    added = builder.combine(slots[1], all, {builder.receive(rank - 1, slots[1], {})});
    slot_free[1] = added;
  }
  // Positions 0..power-1: the odd ranks of the pairs, then the ranks above.
  const int position = in_a_pair ? rank / 2 : rank - folded;
  for (int round = 0; round < rounds(power); ++round) {
    const int other = position ^ (1 << round);
    const int partner = other < folded ? 2 * other + 1 : other + folded;
    const int slot = round % 2;
    const StepId sent = builder.send(partner, all, {added});
    const StepId arrived = builder.receive(partner, slots[slot], {slot_free[slot]});
    added = slot_free[slot] = builder.combine(slots[slot], all, {sent, arrived, added});
  }
  if (in_a_pair) builder.send(rank - 1, all, {added});
  return std::move(builder).finish();
}

int recursive_doubling_steps(int world) {
  const int power = largest_power_of_two(world);
  return rounds(power) + (power == world ? 0 : 2);
}

Elements recursive_doubling_sends(Elements elements, int world, int rank) {
  const int power = largest_power_of_two(world);
  const bool in_a_pair = rank < 2 * (world - power);
  if (in_a_pair && rank % 2 == 0) return elements;
  return (rounds(power) + (in_a_pair ? 1 : 0)) * elements;
}

Elements recursive_doubling_total(Elements elements, int world) {
  const int power = largest_power_of_two(world);
  return (Elements{power} * rounds(power) + Elements{2} * (world - power)) * elements;
}

}  // namespace annulet::schedule
