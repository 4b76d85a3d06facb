#include "annulet/train/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "annulet/comm/in_process.hpp"
#include "annulet/measure/cores.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/trainer.hpp"
#include "annulet/train/weights.hpp"
#include "machine.hpp"
#include "run_checks.hpp"

namespace annulet::train {
namespace {

// One rank's losses of all steps, and the weights after them.
template <class T>
struct Course {
  std::vector<double> losses;
  std::vector<T> weights;
};

// A rank that trains.
template <class T>
class Rank {
 public:
  Rank(std::unique_ptr<comm::Transport> transport, const collectives::EngineOptions& options)
      : engine_(std::move(transport), options) {}

  collectives::Engine& engine() { return engine_; }

  void prepare(const Config& config, const Data& data) {
    trainer_ = std::make_unique<Trainer<T>>(config, engine_, *data.train, nullptr);
    if (config.init.empty()) return;
    load_weights<T>(config.init, trainer_->layout(), [&](const nn::Tensor& tensor, std::span<const T> values) {
      trainer_->assign_weights({tensor.first, tensor.count}, values);
    });
  }

  void step() { course_.losses.push_back(make_step(*trainer_, std::ssize(course_.losses)).loss); }

  // After the last step.
  Course<T> end() {
    course_.weights.resize(static_cast<std::size_t>(trainer_->layout().size()));
    trainer_->visit_weights([&](schedule::Interval elements, std::span<const T> values) {
      std::ranges::copy(values, course_.weights.begin() + elements.first);
    });
    require_finite_weights(parallel::all_finite<T>(course_.weights));
    return std::move(course_);
  }

  Course<T> train(long steps) {
    for (long step = 0; step < steps; ++step) this->step();
    return end();
  }

 private:
  std::unique_ptr<Trainer<T>> trainer_;
  collectives::Engine engine_;  // goes first: what it has under way works on the trainer's memory
  Course<T> course_;
};

// On rank 0, while the others hear from it after each step: neither do they take it for stopped, nor miss that it
// fails. Elsewhere empty. The driver is blocking: alone there is nothing to overlap.
template <class T>
Course<T> lone_course(Config config, const Data& data, const comm::Communicator& world) {
  config.inject.clear();
  comm::InProcessNetwork network(1);
  Rank<T> lone(network.connect(0), {.driver = collectives::Driver::blocking});
  Course<T> course;
  const auto on_rank_0 = [&](const std::function<void()>& work) {
    agree_on(world, [&] {
      if (world.rank() == 0) work();
    });
  };
  on_rank_0([&] { lone.prepare(config, data); });
  for (long step = 0; step < total_steps(config, *data.train); ++step) on_rank_0([&] { lone.step(); });
  on_rank_0([&] { course = lone.end(); });
  return course;
}

collectives::Driver driver_of(const Config& config, collectives::Placement placement, bool threads_allowed) {
  return collectives::choose_driver(config.driver, placement, threads_allowed).driver;
}

template <class T>
Course<T> course_over_mpi(const Config& config, const Data& data, const comm::Environment& environment) {
  const comm::Communicator& world = environment.world();
  const measure::Cores cores = measure::find_cores(world);
  const bool threads_allowed = environment.thread_level() >= comm::ThreadLevel::serialized;
  const auto driver = driver_of(config, {cores.distinct_on_node, cores.ranks_on_node, world.size()}, threads_allowed);
  Rank<T> rank(transport_factory(world, config)(), {driver, config.deadline});
  agree_on(world, [&] { rank.prepare(config, data); });
  collectives::require_same_operations(world, rank.engine());
  return rank.train(total_steps(config, *data.train));
}

template <class T>
Course<T> course_in_threads(const Config& config, const Data& data, int ranks, const RankFailure& failed) {
  comm::InProcessNetwork network(ranks);
  const collectives::Driver driver = driver_of(config, {1, ranks, ranks}, true);
  Course<T> first;
  std::exception_ptr failure;  // of all ranks
  std::mutex mutex;
  const auto keep_failure = [&] {
    const std::lock_guard lock(mutex);
    failure = std::current_exception();
  };
  const auto run = [&](int number) {
    Rank<T> rank(network.connect(number), {driver, config.deadline});
    try {
      rank.prepare(config, data);
      Course<T> course = rank.train(total_steps(config, *data.train));
      if (number == 0) first = std::move(course);
    } catch (const AgreedError&) {
      keep_failure();
    } catch (const InputError&) {
      keep_failure();
    } catch (const std::exception& error) {
      failed(number, error.what());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  }
  if (failure) std::rethrow_exception(failure);
  return first;
}

template <class T>
Verification::Parameter parameter(const nn::Layout& layout, std::size_t i, const Course<T>& many,
                                  const Course<T>& one) {
  const auto element = static_cast<Elements>(i);
  const auto after = std::ranges::upper_bound(layout.tensors(), element, {}, &nn::Tensor::first);
  const nn::Tensor& tensor = *std::prev(after);
  return {fmt::format("{}[{}]", tensor.name, element - tensor.first), static_cast<double>(many.weights[i]),
          static_cast<double>(one.weights[i])};
}

auto bits(double value) { return std::bit_cast<std::uint64_t>(value); }
auto bits(float value) { return std::bit_cast<std::uint32_t>(value); }

template <class T>
Verification compare(const nn::Layout& layout, int ranks, const Course<T>& many, const Course<T>& one) {
  Verification result{ranks, layout.size(), many.losses, one.losses, {}, {}};
  const auto distance = [&](std::size_t i) { return std::abs(many.weights[i] - one.weights[i]); };
  std::size_t largest = 0;
  for (std::size_t i = 0; i < one.weights.size(); ++i) {
    if (bits(many.weights[i]) == bits(one.weights[i])) continue;
    if (result.first_difference.empty()) {
      result.first_difference.push_back(parameter(layout, i, many, one));
      largest = i;
    }
    if (!(distance(i) <= distance(largest))) largest = i;
  }
  if (!result.first_difference.empty()) result.largest_difference.push_back(parameter(layout, largest, many, one));
  return result;
}

template <class T>
nn::Layout layout_of(const Config& config, const Data& data) {
  return make_model<T>(config, data.train->shape().classes, 1)->layout();
}

template <class T>
Verification verify_as(const Config& config, const comm::Environment& environment) {
  const comm::Communicator& world = environment.world();
  const Data data = load_equal_data(world, config);
  const Course<T> many = course_over_mpi<T>(config, data, environment);
  const Course<T> one = lone_course<T>(config, data, world);
  return world.rank() > 0 ? Verification{} : compare(layout_of<T>(config, data), world.size(), many, one);
}

// The lone course first: it refuses what is wrong with model and data once.
template <class T>
Verification verify_in_process_as(const Config& config, int ranks, const RankFailure& failed) {
  const comm::Communicator self;
  const Data data = load_equal_data(self, config);
  const Course<T> one = lone_course<T>(config, data, self);
  const Course<T> many = course_in_threads<T>(config, data, ranks, failed);
  return compare(layout_of<T>(config, data), ranks, many, one);
}

}  // namespace

bool Verification::identical() const {
  const auto same = [](double a, double b) { return bits(a) == bits(b); };
  return std::ranges::equal(losses, alone, same) && first_difference.empty();
}

double Verification::loss_difference() const {
  double largest = 0;
  for (std::size_t s = 0; s < losses.size(); ++s) {
    const double difference = std::abs(losses[s] - alone[s]) / std::max(std::abs(alone[s]), 1e-300);
    if (!std::isfinite(difference)) return difference;
    largest = std::max(largest, difference);
  }
  return largest;
}

Verification verify(const Config& config, const comm::Environment& environment) {
  const comm::Communicator& world = environment.world();
  world.set_deadline(config.deadline);
  require_valid_options(world, config);
  require_possible_reproducibility(world, config, world.size());
  return config.type == "double" ? verify_as<double>(config, environment) : verify_as<float>(config, environment);
}

Verification verify_in_process(const Config& config, int ranks, const RankFailure& failed) {
  const comm::Communicator self;
  require_valid_options(self, config);
  require_possible_reproducibility(self, config, ranks);
  return config.type == "double" ? verify_in_process_as<double>(config, ranks, failed)
                                 : verify_in_process_as<float>(config, ranks, failed);
}

}  // namespace annulet::train
