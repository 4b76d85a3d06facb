#include "annulet/schedule/probes.hpp"

namespace annulet::schedule {
namespace {

// One of the two: sends what is in data, receives into places of its own in scratch.
class Side {
 public:
  explicit Side(const PairShape& shape) : shape_(shape), builder_(shape.rank, shape.world, shape.elements) {
    ANNULET_EXPECTS(shape.elements > 0 && shape.messages > 0 && shape.first != shape.second,
                    "a probe sends something from one rank to another");
  }

  bool is_first() const { return shape_.rank == shape_.first; }
  bool takes_part() const { return is_first() || shape_.rank == shape_.second; }

  StepId send(StepId after) { return builder_.send(peer(), {Place::data, {0, shape_.elements}}, {after}); }
  StepId send_short(StepId after) { return builder_.send(peer(), {Place::data, {0, 1}}, {after}); }
  StepId receive() { return receive(shape_.elements); }
  StepId receive_short() { return receive(1); }

  Plan finish() { return std::move(builder_).finish(); }

 private:
  int peer() const { return is_first() ? shape_.second : shape_.first; }

  StepId receive(Elements count) {
    const Region to{Place::scratch, {next_, count}};
    next_ += count;
    return builder_.receive(peer(), to, {});
  }

  PairShape shape_;
  PlanBuilder builder_;
  Elements next_ = 0;
};

}  // namespace

Plan ping_pong(const PairShape& shape) {
  Side side(shape);
  if (!side.takes_part()) return side.finish();
  StepId last = kNoStep;
  for (int k = 0; k < shape.messages; ++k) {
    if (side.is_first()) {
      side.send(last);
      last = side.receive();
    } else {
      side.send(side.receive());
    }
  }
  return side.finish();
}

Plan stream(const PairShape& shape) {
  Side side(shape);
  if (!side.takes_part()) return side.finish();
  StepId last = kNoStep;
  for (int k = 0; k < shape.messages; ++k) last = side.is_first() ? side.send(kNoStep) : side.receive();
  if (side.is_first()) {
    side.receive_short();
  } else {
    side.send_short(last);  // messages arrive in order
  }
  return side.finish();
}

Plan both_ways(const PairShape& shape) {
  Side side(shape);
  if (!side.takes_part()) return side.finish();
  const StepId begin = side.is_first() ? side.send_short(kNoStep) : side.receive_short();
  for (int k = 0; k < shape.messages; ++k) {
    side.send(side.is_first() ? kNoStep : begin);
    side.receive();
  }
  return side.finish();
}

}  // namespace annulet::schedule
