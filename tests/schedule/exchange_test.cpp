#include "annulet/schedule/exchange.hpp"

#include <gtest/gtest.h>

#include "annulet/schedule/sparse_all_gather.hpp"

namespace annulet::schedule {
namespace {

const std::vector<Elements> kTensors{10, 0, 300, 1000, 3};

SyncOptions exchange_options(std::string_view compression) {
  SyncOptions options{Bytes(1400), Bytes(100), Bytes(64), 2};
  options.compression = parse_compression(compression);
  return options;
}

std::vector<Exchange> exchanges_of(int stage, int world, const SyncOptions& options) {
  const auto buckets = gradient_buckets(kTensors, Bytes(4), options);
  return gradient_exchanges({buckets, kTensors, Bytes(4), stage}, world, options.compression);
}

TEST(Compression, IsReadAndWrittenAlike) {
  for (const char* text : {"none", "bf16", "topk:1", "topk:16", "topk:1048576"}) {
    EXPECT_EQ(to_text(parse_compression(text)), text);
  }
  for (const char* text : {"", "topk", "topk:", "topk:-1", "topk:0", "topk:16x", "topk:99999999999999999999", "fp16"}) {
    EXPECT_THROW(parse_compression(text), InputError) << text;
  }
}

TEST(Compression, SendsAtLeastOneValueOfATensorThatHasAny) {
  EXPECT_EQ(top_k_count(0, 16), 0);
  EXPECT_EQ(top_k_count(1, 16), 1);
  EXPECT_EQ(top_k_count(16, 16), 1);
  EXPECT_EQ(top_k_count(17, 16), 2);
  EXPECT_EQ(top_k_count(5, 1), 5);
}

TEST(Exchange, IsNarrowOrSparseAsTheCompressionHasIt) {
  const auto dense = exchanges_of(0, 4, exchange_options("none")),
             narrow = exchanges_of(1, 4, exchange_options("bf16")),
             sparse = exchanges_of(0, 4, exchange_options("topk:16"));
  ASSERT_EQ(dense.size(), 4U);  // of 10, 300, 1000 and 3 elements
  EXPECT_EQ(dense[1].collective, Collective::all_reduce);
  EXPECT_EQ(dense[1].bytes(), Bytes(1200));
  EXPECT_EQ(narrow[1].collective, Collective::reduce_scatter);
  EXPECT_EQ(narrow[1].bytes(), Bytes(600));
  EXPECT_EQ(sparse[1].collective, Collective::all_gather);
  EXPECT_EQ(sparse[1].bytes(), Bytes(4 * 19 * 8));
  EXPECT_EQ(payload(dense[1], 4), Bytes(1200));
  EXPECT_EQ(payload(sparse[1], 4), Bytes(19 * 8));
}

TEST(Exchange, SendsWhatItsPlansSend) {
  for (const char* compression : {"none", "bf16", "topk:16", "topk:3"}) {
    const SyncOptions options = exchange_options(compression);
    for (const int world : {1, 2, 3, 4, 8}) {
      for (const Exchange& exchange : exchanges_of(0, world, options)) {
        Bytes all{0};
        for (int rank = 0; rank < world; ++rank) {
          const Bytes sent = exchange.element * sent_elements(exchange_plan(exchange, rank, world, options));
          EXPECT_EQ(exchange_sends(exchange, rank, world, options), sent);
          all += sent;
        }
        EXPECT_EQ(exchange_total(exchange, world, options), all);
      }
    }
  }
}

TEST(Exchange, OfSparseGradientsIsTheSparseAllGatherOfEqualPieces) {
  const SyncOptions options = exchange_options("topk:16");
  for (const int world : {2, 4, 8}) {
    for (const Exchange& exchange : exchanges_of(0, world, options)) {
      const std::vector<Elements> lengths(static_cast<std::size_t>(world), exchange.elements / world);
      for (int rank = 0; rank < world; ++rank) {
        EXPECT_EQ(chunk(exchange.elements, world, rank), sparse_piece(lengths, rank));
        EXPECT_EQ(exchange_sends(exchange, rank, world, options),
                  exchange.element * sparse_all_gather_sends({rank, lengths}));
        EXPECT_EQ(exchange_sends(exchange, rank, world, options), payload(exchange, world) * (world - 1));
      }
    }
  }
}

TEST(Exchange, OfWeightsIsNeverCompressed) {
  const auto buckets = gradient_buckets(kTensors, Bytes(4), exchange_options("bf16"));
  for (const Exchange& exchange : weight_exchanges(buckets, Bytes(4))) EXPECT_EQ(exchange.element, Bytes(4));
}

}  // namespace
}  // namespace annulet::schedule
