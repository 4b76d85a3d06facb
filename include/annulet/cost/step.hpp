#pragma once
// What a data-parallel step takes at one of ZeRO's stages, from a profile of one rank's computing and a link: the event
// simulation of the plans that the engine runs, launched when the driver would launch them. All ranks compute alike.
//   blocking         every bucket is launched when backward has ended
//   polling, thread  a bucket is launched when its last gradient is final; while backward runs, moving and adding bytes
//                    takes time of the computing core, which delays backward (thread: unless the progress thread has a
//                    core of its own), and messages are looked at only at backward's pulses
//   step = backward's end + exposed + norm / p + control record + optimiser (from stage 1 on a p-th of it)
// Weights that a step's update has sent on their way (stages 1 and 2) belong to the step in which they arrive.
// For the same inputs the same number, whoever asks: a run, a search for the best bucket cap, a planner.
#include <optional>
#include <string>
#include <vector>

#include "annulet/cost/network.hpp"
#include "annulet/schedule/exchange.hpp"

namespace annulet::cost {

// One rank's step where nothing is sent; instants from its beginning.
struct StepProfile {
  Seconds backward_begins{0};    // data and forward are done
  std::vector<Seconds> ready{};  // [tensor] in layout order: its gradient is final
  Seconds backward_ends{0};
  Seconds norm{0};              // squared norm of all gradients; p ranks take it of a p-th each
  Seconds optimizer{0};         // update, and what else a step does
  SecondsPerByte check{0};      // looking for bad values before a bucket is launched; not in the instants above
  SecondsPerByte moving{0};     // taking a byte to or from the link: a copy, where the network does not know better
  SecondsPerByte adding{0};     // adding a received byte
  SecondsPerByte narrowing{0};  // a byte under way made of, or turned into, wider elements (bf16)
  SecondsPerByte choosing{0};   // choosing what is sent of a byte of gradients (topk)
  SecondsPerByte spreading{0};  // adding a byte of somebody's piece to a bucket (topk)
  Seconds pulse{0};             // computed between two pulses of backward, seen from a random instant
};

enum class Driver { blocking, polling, thread };  // as collectives::Driver

struct StepInput {
  StepProfile profile;
  std::vector<Elements> tensors;  // [tensor] elements
  Bytes element{4};
  schedule::SyncOptions sync;
  int stage = 0;                            // of ZeRO
  std::vector<std::size_t> layers{};        // [tensor] as nn::Tensor's; empty: each tensor is one; needed at stage 3
  std::optional<std::size_t> tied_layer{};  // which is used at both ends
  Network network;
  int world = 1;
  Driver driver = Driver::blocking;
  bool spare_core = false;   // a progress thread has a core of its own
  bool closed_form = false;  // instead of simulating; taken anyway where there are too many steps to simulate
  Bytes control{40};         // of the record that ranks agree on
  // [rank] how many times as long a rank computes as the profile says (stragglers); empty: all alike. Not with a driver
  // that shares the core.
  std::vector<double> slowdown{};
  std::size_t most_simulated = 50'000;  // steps of plans over all ranks; beyond, the closed form serves
};

struct BucketPrediction {
  Bytes bytes{0};
  Seconds ready{0}, start{0}, end{0};
};

// Instants from the step's beginning, of rank 0 where all are alike, else of the slowest.
struct StepPrediction {
  std::vector<BucketPrediction> buckets;
  Seconds forward{0};  // data and forward pass, without what it waits for
  Seconds backward_begins{0};
  Seconds backward_ends{0};
  Seconds exposed{0};    // from there until the last bucket is summed
  Seconds weights{0};    // waited in forward and backward for weights (ZeRO)
  Seconds room{0};       // waited in backward for room for gradients (ZeRO 2 and 3)
  Seconds control{0};    // the control record
  Seconds optimizer{0};  // norm and update
  Seconds step{0};
};

// Whether there are few enough steps of plans to simulate; otherwise the closed form serves.
bool can_simulate(const StepInput& input);

// Throws ContractError unless there is one instant for each tensor. Where there are too many steps to simulate the
// closed form of the ring takes the place of the simulation, one bucket after the other.
StepPrediction predict_step(const StepInput& input);

}  // namespace annulet::cost
