#pragma once
// How planning commands name the links that they used.
#include <span>
#include <string>
#include <vector>

#include "annulet/cost/machine.hpp"

namespace annulet::plan {

// "inside a node of 8 (alpha 5 us, 450 GB/s)".
std::string links_text(const cost::Machine& machine, int ranks);

// "alpha = 5 us, 1 / beta = 450 GB/s", with g and gamma where there are any; of messages that are not eager.
std::string link_inputs(const cost::Link& link);

// What is to be known about the choice of link; may be empty.
std::vector<std::string> link_notes(const cost::Machine& machine, int ranks);

}  // namespace annulet::plan
