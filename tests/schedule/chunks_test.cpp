#include "annulet/schedule/chunks.hpp"

#include <gtest/gtest.h>

namespace annulet::schedule {
namespace {

TEST(Chunks, CoverEveryElementOnceAndDifferByAtMostOneGranule) {
  for (const Elements granule : {1, 4, 64}) {
    for (Elements n = 0; n < 200; n += 7) {
      for (int parts = 1; parts <= 17; ++parts) {
        Elements next = 0, least = n, most = 0;
        for (int i = 0; i < parts; ++i) {
          const Interval piece = chunk(n, parts, i, granule);
          ASSERT_EQ(piece.first, next);
          ASSERT_GE(piece.count, 0);
          if (piece.end() < n) {
            ASSERT_EQ(piece.end() % granule, 0);
          }
          next = piece.end();
          least = std::min(least, piece.count), most = std::max(most, piece.count);
        }
        ASSERT_EQ(next, n);
        ASSERT_LE(most - least, 2 * granule - 1) << n << " elements in " << parts;
        if (granule == 1) {
          ASSERT_LE(most - least, 1);
        }
      }
    }
  }
}

TEST(Chunks, DoNotOverflowForManyElements) {
  const Elements n = Elements{1} << 61;
  EXPECT_EQ(chunk(n, 3, 2).end(), n);
  EXPECT_EQ(chunk(n, 1000, 999).end(), n);
}

TEST(Segments, CutAChunkIntoPiecesOfAtMostTheGivenSize) {
  const Interval whole{10, 7};
  EXPECT_EQ(segments(whole, 3), 3);
  EXPECT_EQ(segment_of(whole, 3, 0), (Interval{10, 3}));
  EXPECT_EQ(segment_of(whole, 3, 2), (Interval{16, 1}));
  EXPECT_EQ(segments({10, 0}, 3), 0);
}

}  // namespace
}  // namespace annulet::schedule
