#pragma once
// What a run says about itself, as plain data; report writes it in several forms. A value that is not known is empty.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "annulet/cost/bucket_cap.hpp"
#include "annulet/cost/network.hpp"
#include "annulet/cost/step.hpp"
#include "annulet/train/profile.hpp"

namespace annulet::train {

// Where the time of a step went on rank 0. total also covers what lies between.
struct StepSeconds {
  Seconds data{0};  // gathering the samples
  Seconds forward{0};
  Seconds backward{0};
  Seconds exposed{0};    // communication that the step waited for: buckets after backward, and the three below
  Seconds control{0};    // the part of it that agreed on the control record
  Seconds gather{0};     // the part of it that waited for weights in forward and backward (ZeRO)
  Seconds room{0};       // the part of it that waited in backward for room for gradients (ZeRO 2 and 3)
  Seconds optimizer{0};  // norm, clipping, update
  Seconds total{0};
  Seconds norm{0};    // the part of `optimizer` that took the norm of this rank's chunks
  Seconds pack{0};    // the part of `backward` that chose what is sent (top-k)
  Seconds unpack{0};  // adding up what came (top-k), wherever it was done

  // The part of `exposed` that waited for the gradients' collectives.
  Seconds gradients() const { return exposed - gather - control; }
};

// What a rank has put on the wire: gradients and weights, in steps and for so many forward passes of evaluations.
struct SentBytes {
  Bytes steps{0}, evaluations{0};
  long evaluation_passes = 0;
};

struct StepRecord {
  long step = 0;    // 0, 1, ...
  double loss = 0;  // mean over the global batch, before this step's update
  double learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  Elements samples = 0;      // of the global batch
  StepSeconds seconds;
  Bytes payload{0};  // gradients that rank 0 originates, compressed
  Bytes wire{0};     // gradients and weights that rank 0 sent since the last step's gradients were summed
};

struct Evaluation {
  double loss = 0;                 // mean over all targets of the test set
  std::optional<double> accuracy;  // classification
  Elements samples = 0;
  Elements targets = 0;  // samples, or tokens of text
};

// One bucket of one sampled step on rank 0, times relative to the step's beginning.
struct BucketRecord {
  long step = 0;
  std::size_t bucket = 0;
  Bytes bytes{0};                      // payload
  Bytes wire{0};                       // what rank 0 sends of it
  Seconds ready{0}, start{0}, end{0};  // gradients final; handed to the engine; summed
  Seconds measured{0};                 // end - start
  Seconds predicted{0};                // the same by event simulation from all ranks' measured starts
  Seconds waiting{0};                  // until the last rank had started this bucket
  Seconds transfer{0};                 // the rest
};

// The communication of one sampled step on rank 0.
struct StepCommunication {
  Seconds measured{0};   // union of the buckets' intervals [start, end]
  Seconds predicted{0};  // the same of the simulated intervals
  Seconds skew{0};       // part of the exposed time in which a rank had not started its last bucket
};

// A step that somebody wants to see.
struct ShownStep {
  StepRecord record;
  std::vector<BucketRecord> buckets;
  std::optional<cost::StepPrediction> prediction;  // if there is a profile
};

// What steps waited for on rank 0, medians.
struct ExposedTimes {
  Seconds gradients{0};  // their all-reduces or, with ZeRO, reduce-scatters
  Seconds weights{0};    // ZeRO: their all-gathers
  Seconds control{0};    // the control record
};

// What ranks hold of one kind of memory: counted by the allocator, and planned by formula.
struct MemoryRecord {
  std::string name;                     // "optimiser state"
  bool state = false;                   // of the model states: weights, gradients, optimiser state
  std::vector<Bytes> counted, planned;  // [rank]
};

// What summing in one fixed order costs.
struct ReproducibleCost {
  Seconds in_micro_shards{0}, by_default{0};  // passes and norm of a step, of the rank that loses most
};

// Known before the first step.
struct RunInfo {
  std::string model;  // its one-line description
  Elements parameters = 0;
  int ranks = 1;
  std::string placement;  // "4 ranks on 1 node"
  std::string driver, driver_reason;
  std::string algorithm;  // "ring, segments of 262.1 kB"
  std::vector<Bytes> buckets;
  cost::Network network;
  std::optional<double> calibration_residual;       // median, relative
  std::optional<cost::StepPrediction> prediction;   // of a step, if there is a profile
  std::optional<cost::BucketCapChoice> bucket_cap;  // if it was left open
  long steps = 0;
  Elements train_samples = 0, test_samples = 0;
  std::string sample = "sample";  // what a sample is called: of text, a window
  std::string mpi, thread_level;
  std::vector<std::string> warnings;
  std::string sums;         // of a reproducible run: how, and what its bits depend on; else empty
  std::string config_toml;  // the options with everything that was left open decided
};

struct Summary {
  std::uint64_t seed = 0;
  int ranks = 1;
  int zero = 0;                                       // the stage
  std::string compress;                               // as the option is spelt
  int reproducible = 0;                               // micro-shards
  std::optional<ReproducibleCost> reproducible_cost;  // if there are any
  std::string driver, algorithm;
  Elements parameters = 0;
  long steps = 0;
  Elements global_batch = 0;
  Bytes bucket_bytes{0};
  std::optional<double> train_loss;       // of the last step
  std::optional<Evaluation> evaluation;   // the last one
  std::optional<Seconds> median_step;     // slowest rank's, first five steps left out
  std::optional<Seconds> median_forward;  // likewise
  std::optional<double> samples_per_second;
  std::optional<Seconds> median_exposed, median_skew;
  std::optional<ExposedTimes> exposed;                               // the same, collective by collective
  std::optional<double> hidden_fraction;                             // 1 - exposed buckets / measured
  Bytes wire_per_step{0}, planned_wire_per_step{0};                  // over all ranks; gradients and weights
  Bytes dense_wire_per_step{0};                                      // the same without compression
  Bytes payload{0}, dense_payload{0};                                // gradients that a rank brings to a step
  std::optional<Seconds> median_pack, median_unpack;                 // of rank 0
  std::vector<Bytes> wire_by_rank;                                   // per step
  Bytes control_per_step{0};                                         // over all ranks
  std::optional<Seconds> all_reduce_measured, all_reduce_predicted;  // medians of sampled steps
  Flops flops_per_step;                                              // forward and backward of the global batch
  FlopRate peak, gemm;        // FMA loop and large product, over the distinct cores in use
  std::optional<double> mfu;  // flops / (median step x peak)
  std::optional<double> hfu;  // the same with activations that are computed again counted
  Bytes peak_rss{0};          // largest over ranks
  std::vector<Bytes> peak_rss_by_rank;
  std::vector<MemoryRecord> memory;
  cost::Network network;
  std::vector<StepCommunication> communication;     // of the sampled steps, the first five left out
  std::optional<cost::BucketCapChoice> bucket_cap;  // if it was left open
  std::optional<Seconds> predicted_step;            // from a profile, before the first step
  std::optional<Seconds> predicted_forward;         // of it
  std::optional<ShownStep> shown;                   // if one was asked for
  std::optional<Profile> profile;                   // of this run, if it was asked for
};

// Told by the trainer on rank 0, in this order; the others are told nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void begin(const RunInfo&) {}
  virtual void step(const StepRecord&) {}
  virtual void evaluated(long, const Evaluation&) {}
  virtual void end(const Summary&, const std::vector<BucketRecord>&, const std::vector<StepRecord>&) {}
};

}  // namespace annulet::train
