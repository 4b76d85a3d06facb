#include "run_checks.hpp"

#include <fmt/format.h>

#include "annulet/base/random.hpp"
#include "annulet/nn/arithmetic.hpp"
#include "annulet/train/agree.hpp"

namespace annulet::train {

void require_valid_options(const comm::Communicator& world, const Config& config) {
  agree_on(world, [&] { validate(config); });
  require_equal(world, stable_hash(to_toml(config)),
                {"the options are not the same on all ranks", "every rank must run the same steps",
                 "Give all ranks the same files and arguments"});
}

Data load_equal_data(const comm::Communicator& world, const Config& config) {
  Data data;
  agree_on(world, [&] { data = load_data(config); });
  require_equal(world, data.train->fingerprint() ^ (data.test ? data.test->fingerprint() : 0),
                {"the data are not the same on all ranks", "every rank takes its slice of one data set",
                 "Give all ranks the same files"});
  return data;
}

void require_possible_reproducibility(const comm::Communicator& world, const Config& config, int ranks) {
  if (config.reproducible == 0) return;
  agree_on(world, [&] { require_enough_micro_shards(config.reproducible, ranks, config.accumulate); });
  require_equal(world, stable_hash(nn::arithmetic()),
                {"the compilers, the instruction sets or the BLAS are not the same on all ranks",
                 "the bits of a result depend on them", "Use one build on processors of one type"});
}

template <class T>
StepRecord make_step(Trainer<T>& trainer, long step) {
  try {
    return trainer.step();
  } catch (const AgreedError&) {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("step {}: {}", step, error.what()));
  }
}

template StepRecord make_step<float>(Trainer<float>&, long);
template StepRecord make_step<double>(Trainer<double>&, long);

void require_finite_weights(bool finite) {
  if (finite) return;
  throw AgreedError(
      describe({"the weights are not finite after the last step", "they are the same on all ranks and of no use",
                "Lower optimizer.lr, or set optimizer.clip"}));
}

}  // namespace annulet::train
