#include "annulet/parallel/control.hpp"

#include <algorithm>

#include "annulet/schedule/recursive_doubling.hpp"

namespace annulet::parallel {
namespace {

void merge(std::byte* to, const std::byte* from, Elements n) {
  for (Elements i = 0; i < n; ++i) {
    ControlRecord& a = reinterpret_cast<ControlRecord*>(to)[i];
    const ControlRecord& b = reinterpret_cast<const ControlRecord*>(from)[i];
    a.loss += b.loss, a.correct += b.correct, a.targets += b.targets, a.squared_norm += b.squared_norm;
    a.lowest_bad_rank = std::min(a.lowest_bad_rank, b.lowest_bad_rank);
  }
}

}  // namespace

Control::Control(collectives::Engine& engine) : engine_(engine), record_(std::make_unique<ControlRecord>()) {
  auto plan = schedule::recursive_doubling_all_reduce(engine.rank(), engine.world(), 1);
  operation_ = engine.declare({"control record",
                               comm::Purpose::control,
                               {"control record", sizeof(ControlRecord), merge},
                               std::make_shared<schedule::Plan>(std::move(plan)),
                               std::as_writable_bytes(std::span(record_.get(), 1))});
}

ControlRecord Control::agree(const ControlRecord& mine) {
  *record_ = mine;
  engine_.launch(operation_);
  engine_.wait(operation_);
  return *record_;
}

}  // namespace annulet::parallel
