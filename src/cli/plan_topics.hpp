#pragma once
// The topics of annulet plan. Each is its options and the answer to them.
#include <memory>

#include "config_options.hpp"
#include "plan_options.hpp"

namespace annulet::cli {

class PlanTopic {
 public:
  virtual ~PlanTopic() = default;
  virtual void add_options(CLI::App& app) = 0;
  virtual plan::Answer answer() const = 0;
};

std::unique_ptr<PlanTopic> collectives_topic();
std::unique_ptr<PlanTopic> memory_topic();
std::unique_ptr<PlanTopic> step_topic();
std::unique_ptr<PlanTopic> compress_topic();
std::unique_ptr<PlanTopic> bucket_topic();
std::unique_ptr<PlanTopic> scale_topic();
std::unique_ptr<PlanTopic> advise_topic();
std::unique_ptr<PlanTopic> deck_topic();

}  // namespace annulet::cli
