#include "annulet/parallel/exact_control.hpp"

#include <algorithm>

#include "annulet/schedule/recursive_doubling.hpp"

namespace annulet::parallel {
namespace {

constexpr std::size_t kSumWords = std::size_t{OrderFreeSum::kBins} + 1;
constexpr std::size_t kNorm = kSumWords, kCorrect = 2 * kSumWords, kTargets = kCorrect + 1, kBad = kTargets + 1;

void add_words(std::byte* to, const std::byte* from, Elements n) {
  for (Elements i = 0; i < n; ++i) {
    reinterpret_cast<std::int64_t*>(to)[i] += reinterpret_cast<const std::int64_t*>(from)[i];
  }
}

OrderFreeSum sum_from(std::span<const std::int64_t> words) {
  OrderFreeSum sum;
  std::ranges::copy(words.first(kSumWords), sum.words().begin());
  return sum;
}

}  // namespace

ExactControl::ExactControl(collectives::Engine& engine)
    : engine_(engine), words_(kBad + static_cast<std::size_t>(engine.world())) {
  auto plan = schedule::recursive_doubling_all_reduce(engine.rank(), engine.world(), std::ssize(words_));
  operation_ = engine.declare({"control record",
                               comm::Purpose::control,
                               {"int64 sum", sizeof(std::int64_t), add_words},
                               std::make_shared<schedule::Plan>(std::move(plan)),
                               std::as_writable_bytes(std::span(words_))});
}

ControlRecord ExactControl::agree(const ExactRecord& mine) {
  std::ranges::fill(words_, 0);
  std::ranges::copy(mine.loss.words(), words_.begin());
  std::ranges::copy(mine.squared_norm.words(), words_.begin() + std::ptrdiff_t{kNorm});
  words_[kCorrect] = mine.correct, words_[kTargets] = mine.targets;
  words_[kBad + static_cast<std::size_t>(engine_.rank())] = mine.bad ? 1 : 0;
  engine_.launch(operation_);
  engine_.wait(operation_);
  const std::span<const std::int64_t> all = words_, bad = all.subspan(kBad);
  ControlRecord record;
  record.loss = sum_from(all).value(), record.squared_norm = sum_from(all.subspan(kNorm)).value();
  record.correct = static_cast<double>(all[kCorrect]), record.targets = static_cast<double>(all[kTargets]);
  if (const auto first = std::ranges::find(bad, 1); first != bad.end()) {
    record.lowest_bad_rank = static_cast<int>(first - bad.begin());
  }
  return record;
}

}  // namespace annulet::parallel
