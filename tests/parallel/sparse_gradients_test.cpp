#include "annulet/parallel/sparse_gradients.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>

#include "annulet/base/random.hpp"
#include "annulet/schedule/sparse_all_gather.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::parallel {
namespace {

using collectives::Driver;
using collectives::Engine;

const std::vector<Elements> kSparseSizes{10, 0, 300, 1000, 3, 17};
constexpr Elements kSparseAll = 1330;
constexpr int kSparseSteps = 4;

nn::Layout sparse_layout() {
  std::vector<nn::Tensor> tensors;
  for (std::size_t i = 0; i < kSparseSizes.size(); ++i)
    tensors.push_back({"t" + std::to_string(i), {kSparseSizes[i]}, {}});
  return nn::Layout(std::move(tensors));
}

SyncOptions sparse_options(Elements one_in, Bytes bucket = Bytes(2000)) {
  SyncOptions options{bucket, Bytes(100), Bytes(64), 2};
  options.compression = {schedule::Compression::Kind::top_k, one_in};
  return options;
}

template <class T>
void fill_normal(std::span<T> gradients, int rank, int step) {
  const RandomStream stream(7, "gradient " + std::to_string(rank) + " " + std::to_string(step));
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<T>(stream.normal(i));
}

template <class T>
void run_sparse_step(GradientSync<T>& sync, const nn::Layout& layout) {
  sync.begin_step();
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) sync.gradient_ready(t), sync.pulse();
  sync.finish();
}

// Summed gradients of several steps, which are to be the same on all ranks.
template <class T>
std::vector<T> sparse_sums(int world, const SyncOptions& options, Driver driver = Driver::polling) {
  const nn::Layout layout = sparse_layout();
  std::vector<T> all;
  std::mutex mutex;
  collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {.driver = driver, .deadline = Seconds(60)});
    AlignedVector<T> gradients(static_cast<std::size_t>(kSparseAll));
    StateAccounts accounts;
    SparseGradients<T> sync(engine, layout, gradients, options, accounts);
    std::vector<T> mine;
    for (int step = 0; step < kSparseSteps; ++step) {
      fill_normal<T>(gradients, rank, step);
      run_sparse_step(sync, layout);
      mine.insert(mine.end(), gradients.begin(), gradients.end());
    }
    const std::lock_guard lock(mutex);
    if (all.empty()) all = mine;
    EXPECT_EQ(std::memcmp(all.data(), mine.data(), all.size() * sizeof(T)), 0) << "rank " << rank;
  });
  return all;
}

TEST(SparseGradients, HaveTheSameBitsOnEveryRankWithEveryDriverWhateverTheBuckets) {
  for (const int world : {1, 2, 3, 4, 8}) {
    const auto expected = sparse_sums<float>(world, sparse_options(16));
    EXPECT_EQ(sparse_sums<float>(world, sparse_options(16), Driver::blocking), expected);
    EXPECT_EQ(sparse_sums<float>(world, sparse_options(16), Driver::thread), expected);
    for (const int bucket : {4, 5000, 100'000})
      EXPECT_EQ(sparse_sums<float>(world, sparse_options(16, Bytes(bucket))), expected);
  }
  EXPECT_EQ(sparse_sums<double>(3, sparse_options(16)), sparse_sums<double>(3, sparse_options(16, Bytes(100'000))));
}

TEST(SparseGradients, AreTheDenseSumsWhereEverythingIsSent) {
  for (const int world : {1, 2, 3}) {
    const auto sparse = sparse_sums<double>(world, sparse_options(1));
    for (int step = 0; step < kSparseSteps; ++step) {
      std::vector<double> expected(static_cast<std::size_t>(kSparseAll)), one(expected);
      for (int rank = 0; rank < world; ++rank) {
        fill_normal<double>(one, rank, step);
        for (std::size_t i = 0; i < one.size(); ++i) expected[i] += one[i];
      }
      const auto begin = sparse.begin() + step * kSparseAll;
      EXPECT_EQ(std::vector<double>(begin, begin + kSparseAll), expected) << world << " ranks, step " << step;
    }
  }
}

// Positions of a bucket's piece, and the values there.
template <class T>
std::map<Elements, T> entries(const SparseGradients<T>& sync, std::size_t bucket, int rank) {
  const std::span<const std::byte> piece = sync.piece(bucket, rank);
  const std::size_t count = piece.size() / (sizeof(T) + sizeof(std::uint32_t));
  std::map<Elements, T> entries;
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::uint32_t position;
    std::memcpy(&value, piece.data() + i * sizeof(T), sizeof value);
    std::memcpy(&position, piece.data() + count * sizeof(T) + i * sizeof position, sizeof position);
    entries[sync.buckets()[bucket].elements.first + position] = value;
  }
  EXPECT_EQ(entries.size(), count) << "a position is sent twice";
  return entries;
}

TEST(SparseGradients, SendAndKeepBitForBitWhatThereWas) {
  const nn::Layout layout = sparse_layout();
  for (const int world : {1, 3}) {
    collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {});
      AlignedVector<float> gradients(static_cast<std::size_t>(kSparseAll));
      StateAccounts accounts;
      SparseGradients<float> sync(engine, layout, gradients, sparse_options(16), accounts);
      for (int step = 0; step < kSparseSteps; ++step) {
        fill_normal<float>(gradients, rank, step);
        std::vector<float> before(sync.residual().begin(), sync.residual().end());
        for (std::size_t i = 0; i < before.size(); ++i) before[i] += gradients[i];
        run_sparse_step(sync, layout);
        std::vector<float> after(sync.residual().begin(), sync.residual().end());
        for (std::size_t b = 0; b < sync.buckets().size(); ++b) {
          for (const auto& [at, value] : entries(sync, b, rank)) {
            EXPECT_EQ(after[static_cast<std::size_t>(at)], 0);
            after[static_cast<std::size_t>(at)] = value;
          }
        }
        EXPECT_EQ(std::memcmp(before.data(), after.data(), before.size() * sizeof(float)), 0);
      }
    });
  }
}

TEST(SparseGradients, CountTheBytesOfTheFormula) {
  const nn::Layout layout = sparse_layout();
  Elements count = 0;
  for (const Elements n : kSparseSizes) count += (n + 15) / 16;
  for (const int world : {1, 2, 4, 8}) {
    collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
      Engine engine(std::move(transport), {});
      AlignedVector<float> gradients(static_cast<std::size_t>(kSparseAll), 1.0F);
      StateAccounts accounts;
      SparseGradients<float> sync(engine, layout, gradients, sparse_options(16), accounts);
      for (int step = 0; step < kSparseSteps; ++step) run_sparse_step(sync, layout);
      const Bytes payload(8 * count);
      EXPECT_EQ(sync.payload(), payload);
      EXPECT_EQ(sync.planned_bytes(), payload * (world - 1));
      EXPECT_EQ(engine.traffic()[comm::Purpose::gradients], payload * (world - 1) * kSparseSteps);
      const std::vector<Elements> lengths(static_cast<std::size_t>(world), count);
      EXPECT_EQ(Bytes(8) * schedule::sparse_all_gather_sends({rank, lengths}), sync.planned_bytes());
    });
  }
}

TEST(SparseGradients, CommunicateTheLastMicroBatchOnly) {
  const nn::Layout layout = sparse_layout();
  collectives::run_ranks(2, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    Engine engine(std::move(transport), {});
    AlignedVector<float> gradients(static_cast<std::size_t>(kSparseAll));
    StateAccounts accounts;
    SparseGradients<float> sync(engine, layout, gradients, sparse_options(16), accounts);
    fill_normal<float>(gradients, rank, 0);
    sync.begin_step();
    sync.begin_micro_batch(false);
    for (std::size_t t = 0; t < kSparseSizes.size(); ++t) sync.gradient_ready(t);
    EXPECT_EQ(sync.launched_bytes(), Bytes(0));
    sync.begin_micro_batch(true);
    for (std::size_t t = 0; t < kSparseSizes.size(); ++t) sync.gradient_ready(t);
    sync.finish();
    EXPECT_EQ(sync.launched_bytes(), sync.planned_bytes());
  });
}

}  // namespace
}  // namespace annulet::parallel
