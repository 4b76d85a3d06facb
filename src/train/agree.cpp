#include "annulet/train/agree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace annulet::train {

void agree_on(const comm::Communicator& communicator, const std::function<void()>& work) {
  std::string failure;
  try {
    work();
  } catch (const std::bad_alloc&) {
    failure =
        "there is not enough memory for this model and these data. Look at the sizes of the model, batch and "
        "data.samples.";
  } catch (const std::exception& error) {
    failure = error.what();
    if (failure.empty()) failure = "failed without saying why";
  }
  const auto failures = communicator.all_gather(failure);
  const auto first =
      std::find_if(failures.begin(), failures.end(), [](const std::string& text) { return !text.empty(); });
  if (first == failures.end()) return;
  const bool alike =
      std::all_of(failures.begin(), failures.end(), [&](const std::string& text) { return text == *first; });
  throw AgreedError(alike ? *first : fmt::format("rank {}: {}", first - failures.begin(), *first));
}

void require_equal(const comm::Communicator& communicator, std::uint64_t value, const Problem& problem) {
  const auto mine = static_cast<std::int64_t>(value);
  const auto all = communicator.all_gather(std::span(&mine, 1));
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    throw AgreedError(
        describe({fmt::format("{} (rank {} differs from rank 0)", problem.what, r), problem.why, problem.hint}));
  }
}

}  // namespace annulet::train
