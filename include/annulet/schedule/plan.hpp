#pragma once
// A plan: one rank's part of a collective as plain data, decided before anything is sent. No MPI, no clock.
// Steps wait for earlier steps (`after`); among themselves sends are posted in plan order, and so are receives, which
// is what MPI's matching needs. The executor runs a plan, cost prices and simulates it, the validator proves it,
// reports count its bytes, and `annulet ring` draws it: all read this one structure.
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "annulet/base/units.hpp"
#include "annulet/schedule/chunks.hpp"

namespace annulet::schedule {

enum class Action : std::uint8_t {
  send,     // `from` goes to `peer`
  receive,  // `to` is filled by `peer`
  combine,  // `to` becomes the reduction of `to` and `from`
  copy,     // `to` becomes `from`
};

// The vector being worked on; the operation's own memory; where a collective is out of place
// (schedule/out_of_place.hpp) what is only read, laid out as data.
enum class Place : std::uint8_t { data, scratch, input };

struct Region {
  Place place = Place::data;
  Interval interval;

  bool overlaps(Region other) const { return place == other.place && interval.overlaps(other.interval); }
};

using StepId = std::int32_t;
constexpr StepId kNoStep = -1;

struct Step {
  Action action;
  int peer;                             // send, receive: the other rank; otherwise -1
  Region from;                          // send, combine, copy
  Region to;                            // receive, combine, copy
  std::int32_t first_edge, edge_count;  // its slice of Plan::edges

  Elements count() const { return action == Action::send ? from.interval.count : to.interval.count; }
};

struct Plan {
  int rank = 0;
  int world = 1;
  Elements elements = 0;  // of the data region
  Elements scratch = 0;   // of the scratch region
  std::vector<Step> steps;
  std::vector<StepId> edges;

  std::span<const StepId> after(const Step& step) const {
    return std::span(edges).subspan(static_cast<std::size_t>(step.first_edge),
                                    static_cast<std::size_t>(step.edge_count));
  }
};

// Elements that the plan puts on the wire.
Elements sent_elements(const Plan& plan);

// Whether it is out of place.
bool reads_input(const Plan& plan);

// Adds steps one after another. Steps of zero elements are not added, and waiting for kNoStep is waiting for nothing,
// so that generators need no special case for empty chunks.
class PlanBuilder {
 public:
  PlanBuilder(int rank, int world, Elements elements);

  StepId send(int peer, Region from, std::initializer_list<StepId> after);
  StepId send(int peer, Region from, std::span<const StepId> after);
  StepId receive(int peer, Region to, std::initializer_list<StepId> after);
  StepId combine(Region from, Region to, std::initializer_list<StepId> after);
  StepId copy(Region from, Region to, std::initializer_list<StepId> after);

  Plan finish() &&;

 private:
  StepId add(Step step, std::span<const StepId> after);

  Plan plan_;
};

}  // namespace annulet::schedule
