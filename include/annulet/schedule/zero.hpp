#pragma once
// What a rank runs, sends and holds under ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054), for P parameters on p
// ranks, k micro-batches, and w, g, K bytes of weight, gradient and optimiser state for each parameter:
//           gradients                    weights                  sent by all ranks    held by a rank
//   stage 0 all-reduce                   -                        2 (p-1) P            (w + g + K) P
//   stage 1 reduce-scatter               all-gather               2 (p-1) P            (w + g) P + K P/p
//   stage 2 reduce-scatter, each of k    all-gather               (k + 1) (p-1) P      w P + (g + K) P/p
//   stage 3 reduce-scatter, each of k    all-gather, 2 k times    3 k (p-1) P          (w + g + K) P/p
// P/p stands for the rank's shard, which the shard map gives exactly.
#include "annulet/schedule/algorithms.hpp"
#include "annulet/schedule/gradient_plan.hpp"

namespace annulet::schedule {

constexpr int kZeroStages = 4;

// What a gradient bucket runs.
Collective gradient_collective(int stage);

// The ring plan by which one rank runs a bucket of `elements`: an all-reduce, a reduce-scatter or an all-gather.
Plan bucket_plan(Collective collective, int rank, int world, Elements elements, Bytes element,
                 const SyncOptions& options);

// Elements that all ranks together send in a step.
struct ZeroTraffic {
  Elements gradients = 0;
  Elements weights = 0;

  Elements total() const { return gradients + weights; }
};
ZeroTraffic zero_traffic(int stage, Elements parameters, int world, Elements micro_batches);

// The same of a bucket, with the exchange that the options say.
Elements bucket_traffic(int stage, Elements elements, int world, Elements micro_batches, Bytes element,
                        const SyncOptions& options);

// Elements that a rank sends of a bucket's gradients.
Elements bucket_sends(Collective collective, int rank, int world, Elements elements, Bytes element,
                      const SyncOptions& options);

// The same in a forward pass of an evaluation: stage 3 gathers the weights for it.
Elements zero_evaluation_traffic(int stage, Elements parameters, int world);

}  // namespace annulet::schedule
