// The stages of ZeRO under a model that is only a layout: awkward sizes, and tensors that begin early.
#include "annulet/parallel/model_state.hpp"
#include "annulet/schedule/micro_shards.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "annulet/base/error.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::parallel {
namespace {

using collectives::Driver;
using collectives::Engine;

const SyncOptions kSmallBuckets{Bytes(400), Bytes(100), Bytes(64), 2};

struct Shape {
  std::vector<Elements> sizes;      // [tensor]
  std::vector<std::size_t> layers;  // [tensor]
  bool tied = false;                // the last layer
};

// 3 parameters; tensors of size 0 in the middle and at the end; one larger than all others; a tied one.
const std::vector<Shape> kShapes{{{3}, {0}},
                                 {{1, 0, 2}, {0, 1, 2}},
                                 {{10, 0, 30, 100, 3, 0}, {0, 0, 1, 2, 3, 4}},
                                 {{5, 2000, 3, 7, 1}, {0, 0, 1, 1, 2}},
                                 {{4, 60, 70, 80, 9, 50}, {0, 1, 1, 2, 3, 4}, true},
                                 {{8, 20}, {0, 1}, true}};

nn::Layout layout_with(const Shape& shape) {
  std::vector<nn::Tensor> tensors;
  for (std::size_t t = 0; t < shape.sizes.size(); ++t) {
    tensors.push_back({"t" + std::to_string(t), {shape.sizes[t]}, {}, shape.layers[t]});
    tensors.back().tied = shape.tied && shape.layers[t] == shape.layers.back();
  }
  return nn::Layout(std::move(tensors));
}

// Passes as a model makes them: the gradient of a weight w is w + (rank + 1) (place + 1) in each micro-batch, that of a
// tied one is written at both ends of backward.
class Passes {
 public:
  Passes(const nn::Layout& layout, int rank) : layout_(layout), rank_(rank), read_(layout.tensors().size()) {}

  void forward(ModelState<double>& state) {
    const std::size_t last = layout_.layers() - 1;
    if (tied()) use(state, last);
    for (std::size_t layer = tied() ? last : last + 1; layer-- > 0;) use(state, layer), state.weights_done(layer);
    if (tied()) state.weights_done(last);
  }

  void backward(ModelState<double>& state, Elements micro_batch) {
    const std::size_t last = layout_.layers() - 1;
    const nn::Accumulate accumulate = state.accumulation(micro_batch);
    if (tied()) {
      use(state, last);
      for (std::size_t t = 0; t < layout_.tensors().size(); ++t) {
        if (layout_.tensors()[t].tied) state.gradient_begins(t), write(state, t, accumulate, 0.5);
      }
    }
    for (std::size_t layer = 0; layer <= last; ++layer) {
      if (layer < last || !tied()) use(state, layer);
      of_layer(state, layer, accumulate);
      if (layer < last || !tied()) state.weights_done(layer);
      if (layer == 0 && tied()) state.weights_done(last);
      state.pulse();
    }
  }

 private:
  bool tied() const { return layout_.tensors().back().tied; }

  void use(ModelState<double>& state, std::size_t layer) {
    state.weights_needed(layer);
    for (std::size_t t = 0; t < layout_.tensors().size(); ++t) {
      const nn::Tensor& tensor = layout_.tensors()[t];
      if (tensor.layer != layer || tensor.count == 0) continue;
      const double* values = state.weights().at(t, tensor.first);
      read_[t].assign(values, values + tensor.count);
    }
  }

  // All tensors of a layer begin before the first of them is final.
  void of_layer(ModelState<double>& state, std::size_t layer, nn::Accumulate accumulate) {
    for (std::size_t t = 0; t < layout_.tensors().size(); ++t) {
      if (layout_.tensors()[t].layer != layer) continue;
      if (t == 0 || layout_.tensors()[t - 1].layer != layer) state.gradient_begins(t);
      if (t + 1 < layout_.tensors().size() && layout_.tensors()[t + 1].layer == layer) state.gradient_begins(t + 1);
      const bool again = layout_.tensors()[t].tied;
      write(state, t, again ? nn::Accumulate::add : accumulate, again ? 0.5 : 1);
      state.gradient_ready(t);
    }
  }

  void write(ModelState<double>& state, std::size_t t, nn::Accumulate accumulate, double share) {
    const nn::Tensor& tensor = layout_.tensors()[t];
    double* gradients = state.gradients().at(t, tensor.first);
    for (Elements i = 0; i < tensor.count; ++i) {
      const double own = share * (read_[t][static_cast<std::size_t>(i)] + (rank_ + 1) * static_cast<double>(i + 1));
      gradients[i] = accumulate == nn::Accumulate::add ? gradients[i] + own : own;
    }
  }

  const nn::Layout& layout_;
  int rank_;
  std::vector<std::vector<double>> read_;  // [tensor]
};

struct Course {
  std::vector<double> weights;
  std::vector<double> squared_norms;  // [step]
};

constexpr Elements kMicroBatches = 2;

Course run(const Shape& shape, int stage, int world, Driver driver) {
  const nn::Layout layout = layout_with(shape);
  Course course{{}, std::vector<double>(3)};
  std::mutex mutex;
  collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.driver = driver, .deadline = Seconds(60)});
    ModelState<double> state(engine, layout, {stage, {.momentum = 0.9}, kSmallBuckets, Freed::spoilt});
    std::vector<double> start(static_cast<std::size_t>(layout.size()));
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<double>(i % 17) - 8;
    state.weight_sync().assign({0, layout.size()}, start);
    Passes passes(layout, rank);
    for (double& squared_norm : course.squared_norms) {
      state.begin_step();
      for (Elements k = 0; k < kMicroBatches; ++k) {
        state.begin_micro_batch(k, kMicroBatches);
        passes.forward(state), passes.backward(state, k);
      }
      state.finish();
      {
        const std::lock_guard lock(mutex);
        squared_norm += state.gradient_sync().owned_squared_norm();
      }
      state.update({.learning_rate = 1e-3});
    }
    state.settle();
    std::vector<double> weights(start.size());
    state.weight_sync().visit([&](schedule::Interval elements, std::span<const double> values) {
      std::copy(values.begin(), values.end(), weights.begin() + elements.first);
    });
    const std::lock_guard lock(mutex);
    if (course.weights.empty()) course.weights = weights;
    EXPECT_EQ(course.weights, weights) << "rank " << rank;
  });
  return course;
}

TEST(ModelState, TrainsAnyTensorsOnAnyNumberOfRanksAlikeAtEveryStage) {
  for (std::size_t s = 0; s < kShapes.size(); ++s) {
    for (const int world : {1, 2, 5}) {
      const Course expected = run(kShapes[s], 0, world, Driver::polling);
      for (const int stage : {1, 2, 3}) {
        for (const Driver driver : {Driver::blocking, Driver::polling, Driver::thread}) {
          SCOPED_TRACE(testing::Message()
                       << "shape " << s << ", stage " << stage << ", " << world << " ranks, " << to_text(driver));
          const Course course = run(kShapes[s], stage, world, driver);
          for (std::size_t i = 0; i < expected.weights.size(); ++i) {
            ASSERT_NEAR(course.weights[i], expected.weights[i], 1e-9 * (1 + std::abs(expected.weights[i]))) << i;
          }
          for (std::size_t step = 0; step < expected.squared_norms.size(); ++step) {
            ASSERT_NEAR(course.squared_norms[step], expected.squared_norms[step], 1e-9 * expected.squared_norms[step]);
          }
        }
      }
    }
  }
}

TEST(ModelState, RefusesGradientsThatWereNotAnnounced) {
  const nn::Layout layout = layout_with(kShapes[2]);
  collectives::run_ranks(1, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {});
    ModelState<double> state(engine, layout, {2, {}, kSmallBuckets});
    state.begin_step();
    EXPECT_THROW(state.gradient_ready(0), ContractError);
  });
}

TEST(ModelState, LeavesNoWeightsOfStage3WhereNobodyNeedsThem) {
  const nn::Layout layout = layout_with(kShapes[4]);  // tied
  collectives::run_ranks(3, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {});
    ModelState<double> state(engine, layout, {3, {}, kSmallBuckets, Freed::spoilt});
    const auto place = [&](std::size_t t) { return state.weights().at(t, layout.tensors()[t].first); };
    state.begin_step();
    EXPECT_EQ(place(5), nullptr);
    state.weights_needed(4), state.weights_needed(3);
    const double* tied = place(5);
    const double* gone = place(4);
    EXPECT_EQ(tied[49], 0);
    EXPECT_EQ(gone[8], 0);
    state.weights_done(3);
    EXPECT_EQ(place(4), nullptr);
    EXPECT_EQ(place(5), tied);
    for (const std::size_t layer : {2U, 1U, 0U}) state.weights_needed(layer), state.weights_done(layer);
    EXPECT_EQ(tied[49], 0);
    EXPECT_THROW(state.weights_needed(2), ContractError);
    state.weights_done(4);
    Passes(layout, rank).backward(state, 0);
    for (std::size_t t = 0; t < layout.tensors().size(); ++t) EXPECT_EQ(place(t), nullptr);
    state.finish();
  });
}

// 100,000 float parameters with Adam on 4 ranks (16 bytes of state a parameter), and what is beside the states.
TEST(ModelState, TakesTheMemoryOfTheFormula) {
  const nn::Layout layout = layout_with({{100, 19'900, 80'000}, {0, 0, 1}});
  const std::vector<Bytes> states{Bytes(1'600'000), Bytes(1'000'000), Bytes(700'000), Bytes(400'000)};
  const std::vector<Bytes> buckets{Bytes(0), Bytes(0), Bytes(400'000), Bytes(1'040'000)};
  const nn::OptimizerOptions adam{.kind = nn::OptimizerOptions::Kind::adam};
  for (std::size_t stage = 0; stage < states.size(); ++stage) {
    collectives::run_ranks(4, [&](int, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {});
      const ModelState<float> state(engine, layout, {static_cast<int>(stage), adam, kSmallBuckets});
      EXPECT_EQ(state.memory().states(), states[stage]);
      EXPECT_EQ(state.memory().buckets, buckets[stage]);
      EXPECT_EQ(state.memory(), state.planned_memory());
    });
  }
}

// Of each tensor one value in 16, 7 + 1,244 + 5,000 with their positions, from four ranks; chosen among 80,000.
TEST(ModelState, CountsWhatTopKHasInFlightAndHasNotSent) {
  const nn::Layout layout = layout_with({{100, 19'900, 80'000}, {0, 0, 1}});
  SyncOptions options = kSmallBuckets;
  options.compression = {schedule::Compression::Kind::top_k, 16};
  collectives::run_ranks(4, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {});
    const ModelState<float> state(engine, layout, {0, {}, options});
    EXPECT_EQ(state.memory().residual, Bytes(400'000));
    EXPECT_EQ(state.memory().buckets, Bytes(4 * 6251 * 8 + 80'000 * 8));
    EXPECT_EQ(state.memory(), state.planned_memory());
  });
}

// Three ranks have up to two pieces of eight micro-shards each, whose sums wait for each other in two slots; four ranks
// have one, and wait for nothing.
TEST(ModelState, CountsThePartialSumsOfMicroShards) {
  const nn::Layout layout = layout_with({{100, 19'900, 80'000}, {0, 0, 1}});
  SyncOptions options = kSmallBuckets;
  options.micro_shards = 8;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int world : {3, 4}) {
      collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
        Engine engine(std::move(transport), {});
        const ModelState<float> state(engine, layout, {.stage = stage, .sync = options});
        const StateMemory held = state.memory();
        const int slots = schedule::rank_sums({8, world, rank}).slots;
        EXPECT_EQ(slots, world == 4 || rank == 2 ? 1 : 2) << rank;
        const bool waits = stage < 2 || world == 3;
        EXPECT_EQ(held.partial_sums, waits ? Bytes(slots * 400'000) - held.gradients : Bytes(0)) << stage;
        EXPECT_EQ(held.buckets > Bytes(0), stage == 3 || (stage == 2 && world == 4)) << stage;
        EXPECT_EQ(held, state.planned_memory());
      });
    }
  }
}

// The next layer is on its way while one computes, and no other.
TEST(ModelState, GathersOneLayerAheadAtStage3) {
  const nn::Layout layout = layout_with({{4, 5, 6, 7}, {0, 1, 2, 3}});
  collectives::run_ranks(1, [&](int, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.driver = Driver::polling});
    ModelState<double> state(engine, layout, {3, {}, kSmallBuckets, Freed::spoilt});
    const std::size_t first = layout.layers();  // after the gradients' operations
    const auto launched = [&](std::size_t use) {
      return engine.timeline(collectives::OperationId{first + use}).launched != Instant{};
    };
    state.begin_step();
    EXPECT_TRUE(launched(0) && launched(1) && !launched(2));
    state.weights_needed(3);
    EXPECT_FALSE(launched(2));
    state.weights_done(3);
    EXPECT_TRUE(launched(2) && !launched(3));
    for (const std::size_t layer : {2U, 1U, 0U}) state.weights_needed(layer), state.weights_done(layer);
    EXPECT_TRUE(launched(5) && !launched(6));  // two of backward's
    state.settle();
  });
}

}  // namespace
}  // namespace annulet::parallel
