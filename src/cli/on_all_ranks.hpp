#pragma once
// How a command ends that runs on all ranks: in good order where they all know of a failure, else by ending the job.
#include <functional>
#include <string_view>

#include "annulet/comm/environment.hpp"

namespace annulet::cli {

// The exit code: that of `work`, or 1 after AgreedError, which rank 0 prints. Any other exception is this rank's only,
// and the others may wait for it: prints it and ends all ranks.
int on_all_ranks(std::string_view command, const comm::Environment& environment, const std::function<int()>& work);

// The same where the ranks are threads of this process: 1 after any exception.
int on_simulated_ranks(std::string_view command, const std::function<int()>& work);

}  // namespace annulet::cli
