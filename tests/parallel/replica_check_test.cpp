#include "annulet/parallel/replica_check.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <mutex>

#include "annulet/parallel/gradient_sync.hpp"
#include "collectives/in_process_ranks.hpp"

namespace annulet::parallel {
namespace {

nn::Layout three_tensors() {
  return nn::Layout(
      {{"a", {3}, {}, 0, false, 0, 0}, {"b", {2, 2}, {}, 0, false, 0, 0}, {"c", {1}, {}, 0, false, 0, 0}});
}

// What the check says where `spoil` has worked on the weights of each rank.
std::string difference(int world, const std::function<void(int rank, std::span<float>)>& spoil) {
  const nn::Layout layout = three_tensors();
  std::string text = "not said";
  std::mutex mutex;
  collectives::run_ranks(world, [&](int rank, std::unique_ptr<comm::Transport> transport) {
    collectives::Engine engine(std::move(transport), {});
    const auto buckets = schedule::gradient_buckets(sizes_of(layout), Bytes(4), {});
    MemoryAccount account("weights");
    const auto weights = make_replicated_weights<float>(layout, buckets, account);
    std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8};
    spoil(rank, values);
    weights->assign({0, 8}, values);
    ReplicaCheck check(engine, layout);
    check.difference(*weights);
    const std::string mine = check.difference(*weights);
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(text == "not said" || text == mine);
    text = mine;
  });
  return text;
}

void flip(float& value) { value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U); }

TEST(ReplicaCheck, IsContentWithEqualWeights) {
  for (const int world : {1, 2, 5}) EXPECT_EQ(difference(world, [](int, std::span<float>) {}), "");
}

TEST(ReplicaCheck, NamesTheTensorAndTheRankOfOneFlippedBit) {
  EXPECT_EQ(difference(4,
                       [](int rank, std::span<float> w) {
                         if (rank == 2) flip(w[5]);
                       }),
            "b on rank 2");
  EXPECT_EQ(difference(3,
                       [](int rank, std::span<float> w) {
                         if (rank == 0) flip(w[7]);
                       }),
            "c on rank 0");
  EXPECT_EQ(difference(2,
                       [](int rank, std::span<float> w) {
                         if (rank == 1) flip(w[0]);
                       }),
            "a on rank 1");
}

TEST(ReplicaCheck, NamesAllRanksAndCountsTensors) {
  const auto spoil = [](int rank, std::span<float> w) {
    if (rank == 1 || rank == 3) flip(w[3]);
    if (rank == 1) flip(w[7]);
  };
  EXPECT_EQ(difference(5, spoil), "b on ranks 1, 3, and 1 more tensor");
}

TEST(ReplicaCheck, SeesEveryBitAndPlace) {
  std::vector<float> values{1, 2, 3, 0};
  const std::uint64_t before = checksum<float>(values, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (int bit = 0; bit < 32; ++bit) {
      auto other = values;
      other[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(other[i]) ^ (1U << bit));
      EXPECT_NE(checksum<float>(other, 0), before) << i << " " << bit;
    }
  }
  std::swap(values[0], values[1]);
  EXPECT_NE(checksum<float>(values, 0), before);
}

}  // namespace
}  // namespace annulet::parallel
