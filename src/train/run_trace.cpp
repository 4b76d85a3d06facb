#include "run_trace.hpp"

#include <span>
#include <vector>

#include "annulet/train/agree.hpp"

namespace annulet::train {

void RunTrace::begin(Seconds ahead) {
  if (tracer_ == nullptr) return;
  Instant origin = Clock::now();
  world_.broadcast(std::as_writable_bytes(std::span(&origin, 1)), 0);
  agree_on(world_, [&] { tracer_->begin(world_.rank(), world_.size(), {origin, ahead}); });
}

template <class T>
void RunTrace::step(const Trainer<T>& trainer, const StepRecord& record) {
  if (tracer_ == nullptr) return;
  traced_.began = trainer.step_began(), traced_.backward_ended = trainer.backward_ended();
  traced_.record = record;
  traced_.buckets.clear();
  for (std::size_t b = 0; b < trainer.sync().buckets().size() && world_.size() > 1; ++b) {
    traced_.buckets.push_back(trainer.sync().times(b));
  }
  tracer_->step(traced_);
}

void RunTrace::merge() {
  if (tracer_ == nullptr) return;
  std::string events;
  agree_on(world_, [&] { events = tracer_->events(); });
  std::vector<std::string> all;
  for (const auto& bytes : world_.gather(std::as_bytes(std::span(events)), 0)) {
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  const bool keeps = world_.rank() == 0;
  agree_on(world_, [&] {
    if (keeps) tracer_->keep(all);
  });
  if (!keeps) tracer_->discard();
}

template void RunTrace::step(const Trainer<float>&, const StepRecord&);
template void RunTrace::step(const Trainer<double>&, const StepRecord&);

}  // namespace annulet::train
