#pragma once
// A whole run: read the data, look at the machine, train, evaluate, and account for every byte. Collective over the
// communicator. Failures that concern all ranks end as AgreedError on all of them, with nothing under way.
#include <filesystem>
#include <optional>

#include "annulet/comm/environment.hpp"
#include "annulet/cost/machine.hpp"
#include "annulet/train/config.hpp"
#include "annulet/train/records.hpp"
#include "annulet/train/tracer.hpp"

namespace annulet::train {

struct SessionOptions {
  std::filesystem::path weights{};         // where rank 0 writes the weights at the end; empty: nowhere
  std::optional<cost::Machine> machine{};  // the network to predict with, instead of a calibration at the start
  std::optional<Profile> profile{};        // of one rank: to predict a step from, before the first one
  std::optional<long> show_step{};         // sample this one whatever else, and put it into the summary
  Tracer* tracer = nullptr;                // told of every step, on every rank; outlives the session
  bool record_profile = false;             // leave one in the summary; one rank only
};

// `observer` is told of the run on rank 0 only. Returns the summary there; elsewhere it is incomplete.
Summary run_session(const Config& config, const comm::Environment& environment, const SessionOptions& options,
                    Observer& observer);

}  // namespace annulet::train
