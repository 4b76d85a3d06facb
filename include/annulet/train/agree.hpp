#pragma once
// Failures that all ranks know of: each ends in good order, and only rank 0 says why.
#include <functional>

#include "annulet/base/error.hpp"
#include "annulet/comm/communicator.hpp"

namespace annulet::train {

// Thrown on every rank at the same point, with the same text; nothing is under way.
class AgreedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `work` on every rank. If it throws anywhere, AgreedError everywhere: the lowest rank's text, preceded by the
// rank unless all failed alike. Collective; for start-up and shutdown.
void agree_on(const comm::Communicator& communicator, const std::function<void()>& work);

// AgreedError unless `value` is the same on all ranks: "what differs: rank 2 ...".
void require_equal(const comm::Communicator& communicator, std::uint64_t value, const Problem& problem);

}  // namespace annulet::train
