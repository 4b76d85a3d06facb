#pragma once
// What every collective of a vector costs on a machine, by each algorithm: the closed forms of cost/closed_form.hpp.
//   collectives  time, split in latency, bandwidth and adding; steps; payload; bytes on the wire of the rank that sends
//                least, of the mean and of the one that sends most; that one's beside the least possible
//   crossovers   the sizes at which one algorithm overtakes another, for these ranks and this link
// The tree's all-reduce has two rows: as a closed form, which charges every rank ceil(log2 p) sends down and up and
// 2 M in all, and with the bytes of the binomial tree that is executed, 2 (p-1) M over all ranks.
#include <string>

#include "annulet/cost/machine.hpp"
#include "annulet/plan/answer.hpp"

namespace annulet::plan {

struct CollectivesQuestion {
  Bytes bytes{0};  // M, the whole vector
  int ranks = 1;
  cost::Machine machine{};
  std::string machine_name{};  // for the title: "h100"
  std::string vector_name{};   // likewise: "the gradients of llama-7b, 2 bytes each"; may be empty
  Bytes element{1};            // M is a whole number of them; chunks are cut between them
};

// Which link: cost::links_of; said in the title, and in a note where the machine does not say how many ranks share a
// node. Throws InputError for less than one rank, or bytes that are no whole number of elements.
Answer plan_collectives(const CollectivesQuestion& question);

}  // namespace annulet::plan
