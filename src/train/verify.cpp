#include "annulet/train/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "annulet/comm/in_process.hpp"
#include "annulet/measure/cores.hpp"
#include "annulet/train/agree.hpp"
#include "annulet/train/data.hpp"
#include "annulet/train/trainer.hpp"
#include "annulet/train/weights.hpp"
#include "machine.hpp"

namespace annulet::train {
namespace {

// One rank's losses of all steps, and the weights after them.
template <class T>
struct Course {
  std::vector<double> losses;
  std::vector<T> weights;
};

template <class T>
void load_initial_weights(Trainer<T>& trainer, const Config& config) {
  if (config.init.empty()) return;
  load_weights<T>(config.init, trainer.layout(), [&](const nn::Tensor& tensor, std::span<const T> values) {
    trainer.assign_weights({tensor.first, tensor.count}, values);
  });
}

template <class T>
Course<T> train_course(Trainer<T>& trainer, long steps) {
  Course<T> course;
  for (long step = 0; step < steps; ++step) course.losses.push_back(trainer.step().loss);
  course.weights.resize(static_cast<std::size_t>(trainer.layout().size()));
  trainer.visit_weights([&](schedule::Interval elements, std::span<const T> values) {
    std::ranges::copy(values, course.weights.begin() + elements.first);
  });
  return course;
}

// Of one rank among others, none of which fails by itself before the first step.
template <class T>
Course<T> rank_course(const Config& config, const Data& data, collectives::Engine& engine) {
  Trainer<T> trainer(config, engine, *data.train, nullptr);
  load_initial_weights(trainer, config);
  return train_course(trainer, total_steps(config, *data.train));
}

// The blocking driver: alone there is nothing to overlap.
template <class T>
Course<T> lone_course(Config config, const Data& data) {
  config.inject.clear();
  comm::InProcessNetwork network(1);
  collectives::Engine engine(network.connect(0), {.driver = collectives::Driver::blocking});
  return rank_course<T>(config, data, engine);
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
  std::unique_ptr<Trainer<T>> trainer;
  collectives::Engine engine(transport_factory(world, config)(), {driver, config.deadline});
  agree_on(world, [&] {
    trainer = std::make_unique<Trainer<T>>(config, engine, *data.train, nullptr);
    load_initial_weights(*trainer, config);
  });
  collectives::require_same_operations(world, engine);
  return train_course(*trainer, total_steps(config, *data.train));
}

template <class T>
Course<T> course_in_threads(const Config& config, const Data& data, int ranks) {
  comm::InProcessNetwork network(ranks);
  const collectives::Driver driver = driver_of(config, {1, ranks, ranks}, true);
  Course<T> first;
  std::exception_ptr failure;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          collectives::Engine engine(network.connect(rank), {driver, config.deadline});
          Course<T> course = rank_course<T>(config, data, engine);
          if (rank == 0) first = std::move(course);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception();
        }
      });
    }
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

template <class T>
Verification compare(const nn::Layout& layout, int ranks, const Course<T>& many, const Course<T>& one) {
  Verification result{ranks, layout.size(), many.losses, one.losses, {}, {}};
  const auto distance = [&](std::size_t i) { return std::abs(many.weights[i] - one.weights[i]); };
  std::size_t largest = 0;
  for (std::size_t i = 0; i < one.weights.size(); ++i) {
    if (many.weights[i] == one.weights[i]) continue;
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
Verification verify_as(const Config& config, const comm::Environment& environment) {
  const comm::Communicator& world = environment.world();
  Data data;
  agree_on(world, [&] { data = load_data(config); });
  const Course<T> many = course_over_mpi<T>(config, data, environment);
  Verification result;
  agree_on(world, [&] {
    if (world.rank() > 0) return;
    const auto model = make_model<T>(config, data.train->shape().classes, 1);
    result = compare(model->layout(), world.size(), many, lone_course<T>(config, data));
  });
  return result;
}

template <class T>
Verification verify_in_process_as(const Config& config, int ranks) {
  const Data data = load_data(config);
  const Course<T> one = lone_course<T>(config, data);  // refuses what is wrong with the options, in one thread
  const Course<T> many = course_in_threads<T>(config, data, ranks);
  return compare(make_model<T>(config, data.train->shape().classes, 1)->layout(), ranks, many, one);
}

}  // namespace

double Verification::loss_difference() const {
  double largest = 0;
  for (std::size_t s = 0; s < losses.size(); ++s) {
    const double difference = std::abs(losses[s] - alone[s]) / std::max(std::abs(alone[s]), 1e-300);
    if (!(difference <= largest)) largest = losses[s] == alone[s] ? largest : difference;
  }
  return largest;
}

Verification verify(const Config& config, const comm::Environment& environment) {
  environment.world().set_deadline(config.deadline);
  agree_on(environment.world(), [&] { validate(config); });
  return config.type == "double" ? verify_as<double>(config, environment) : verify_as<float>(config, environment);
}

Verification verify_in_process(const Config& config, int ranks) {
  validate(config);
  return config.type == "double" ? verify_in_process_as<double>(config, ranks)
                                 : verify_in_process_as<float>(config, ranks);
}

}  // namespace annulet::train
