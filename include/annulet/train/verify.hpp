#pragma once
// The same steps on all ranks and on one: whether they train the same model, and in a reproducible run the same bits.
#include <functional>
#include <string>
#include <vector>

#include "annulet/comm/environment.hpp"
#include "annulet/train/config.hpp"

namespace annulet::train {

struct Verification {
  int ranks = 1;
  Elements parameters = 0;
  std::vector<double> losses, alone;  // [step] on all ranks, on one

  // Two values of one parameter, "layers.0.weight[12]" with its number in the tensor.
  struct Parameter {
    std::string name;
    double on_ranks = 0, alone = 0;
  };
  std::vector<Parameter> largest_difference;  // none where all parameters are equal, else one
  std::vector<Parameter> first_difference;

  // To the last bit.
  bool identical() const;

  // The largest difference of two losses of a step, relative to the loss; not finite where a loss is not.
  double loss_difference() const;
};

// Trains as `config` says on all ranks, and then on rank 0 alone. Collective; known on rank 0, elsewhere empty. Throws
// what run_session throws before the first step, and while it trains. Nothing is measured to decide by: where algorithm
// or bucket are `auto`, sums are by the ring, with the default bucket.
Verification verify(const Config& config, const comm::Environment& environment);

// Called by a rank that fails alone, with what it says; does not return, since the others wait for that rank.
using RankFailure = std::function<void(int rank, const std::string& why)>;

// The same without MPI, on `ranks` ranks in threads of this process.
Verification verify_in_process(const Config& config, int ranks, const RankFailure& failed);

}  // namespace annulet::train
