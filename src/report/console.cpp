#include "annulet/report/console.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

#include "annulet/report/closing_table.hpp"
#include "annulet/report/step_drawing.hpp"

namespace annulet::report {
namespace {

constexpr Seconds kRedraw{0.1}, kLine{5};

std::string buckets_text(const std::vector<Bytes>& buckets) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t b = 0; b < buckets.size() && b < kMost; ++b) text += (b > 0 ? ", " : "") + to_text(buckets[b]);
  if (buckets.size() > kMost) text += fmt::format(" and {} more", buckets.size() - kMost);
  return text;
}

std::string link_text(const train::RunInfo& info) {
  std::string text = cost::to_text(info.network) + " (" + info.network.inside.source;
  if (info.calibration_residual) text += fmt::format(", median residual {:.0f} %", 100 * *info.calibration_residual);
  return text + ")";
}

std::string prediction_text(const cost::StepPrediction& p) {
  const auto ms = [](Seconds time) { return time.count() * 1e3; };
  return fmt::format("step {:.2f} ms = until backward's end {:.2f} + exposed {:.2f} + optimiser {:.2f}", ms(p.step),
                     ms(p.backward_ends), ms(p.exposed + p.control), ms(p.optimizer));
}

std::string binary_text(Bytes bytes) {
  const std::int64_t kibibytes = bytes.value() >> 10;
  return kibibytes % 1024 == 0 ? fmt::format("{} MiB", kibibytes >> 10) : fmt::format("{} KiB", kibibytes);
}

// The predicted curve, bars from 0 to the dearest cap.
std::string bucket_cap_text(const cost::BucketCapChoice& choice) {
  constexpr double kWidth = 30;
  const auto dearer = [](const auto& a, const auto& b) { return a.step < b.step; };
  const Seconds dearest = std::max_element(choice.curve.begin(), choice.curve.end(), dearer)->step;
  std::string text =
      fmt::format("bucket    auto: {}, the largest cap within 1 % of the cheapest predicted step\n          (on {})\n",
                  binary_text(choice.cap), choice.basis);
  for (const cost::CapPrediction& point : choice.curve) {
    text += fmt::format("{:>18} {:>4} bucket{} {:>9.3f} ms  {}{}\n", binary_text(point.cap), point.buckets,
                        point.buckets == 1 ? " " : "s", point.step.count() * 1e3,
                        std::string(static_cast<std::size_t>(kWidth * (point.step / dearest)), '#'),
                        point.cap == choice.cap ? " <" : "");
  }
  return text;
}

void append_time_left(fmt::memory_buffer& line, Seconds left) {
  const long s = static_cast<long>(left.count() + 0.5);
  if (s >= 3600) fmt::format_to(std::back_inserter(line), "{}:", s / 3600);
  fmt::format_to(std::back_inserter(line), "{:02}:{:02} left", s / 60 % 60, s % 60);
}

}  // namespace

Console::Console(Liveliness liveliness, std::FILE* out) : liveliness_(liveliness), out_(out) {}

void Console::begin(const train::RunInfo& info) {
  steps_ = info.steps;
  std::string text = fmt::format("{}\n{}, {} ({})\n", info.model, info.placement, info.mpi, info.thread_level);
  text += fmt::format("data      {} training {}s, {} test {}s\n", info.train_samples, info.sample, info.test_samples,
                      info.sample);
  sample_ = info.sample;
  if (info.ranks > 1) {
    text += fmt::format("engine    {}; {} (driver: {})\n", info.algorithm, info.driver, info.driver_reason);
    if (info.bucket_cap) text += bucket_cap_text(*info.bucket_cap);
    text += fmt::format("buckets   {}\n", buckets_text(info.buckets));
    text += fmt::format("link      {}\n", link_text(info));
  }
  if (info.prediction) text += fmt::format("predicted {}\n", prediction_text(*info.prediction));
  if (!info.sums.empty()) text += fmt::format("sums      {}\n", info.sums);
  for (const std::string& warning : info.warnings) text += fmt::format("warning   {}\n", warning);
  print(text);
  begun_ = shown_ = Clock::now();
}

void Console::step(const train::StepRecord& record) {
  samples_ += record.samples;
  const Instant now = Clock::now();
  const Seconds since = now - shown_;
  const bool redraw = liveliness_ == Liveliness::redraw;
  if (since < (redraw ? kRedraw : kLine)) return;
  const double done = static_cast<double>(record.step + 1);
  line_.clear();
  fmt::format_to(std::back_inserter(line_), "{}step {}/{}  loss {:.4f}  {:.0f} {}s/s  ", redraw ? "\r" : "",
                 record.step + 1, steps_, record.loss, static_cast<double>(samples_) / since.count(), sample_);
  append_time_left(line_, Seconds(now - begun_) * ((static_cast<double>(steps_) - done) / done));
  fmt::format_to(std::back_inserter(line_), "{}", redraw ? "\x1b[K" : "\n");
  std::fwrite(line_.data(), 1, line_.size(), out_);
  std::fflush(out_);
  line_open_ = redraw;
  samples_ = 0;
  shown_ = now;
}

void Console::evaluated(long step, const train::Evaluation& evaluation) {
  std::string text = fmt::format("step {}/{}  test loss {:.4f}", steps_ == 0 ? 0 : step + 1, steps_, evaluation.loss);
  if (evaluation.accuracy) text += fmt::format("  test accuracy {:.4f}", *evaluation.accuracy);
  print(text + '\n');
}

void Console::end(const train::Summary& summary, const std::vector<train::BucketRecord>& buckets,
                  const std::vector<train::StepRecord>& steps) {
  print(closing_table(summary, buckets, steps));
  if (!summary.shown) return;
  const bool plain = liveliness_ != Liveliness::redraw || std::getenv("NO_COLOR") != nullptr;
  print(draw_step(*summary.shown, {terminal_width(), plain ? Colour::none : Colour::ansi}));
}

void Console::print(const std::string& text) {
  erase_line();
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

void Console::erase_line() {
  if (line_open_) std::fputs("\r\x1b[K", out_);
  line_open_ = false;
}

Liveliness detect_liveliness() {
  const bool launched = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr;
  if (!launched) return isatty(STDOUT_FILENO) != 0 ? Liveliness::redraw : Liveliness::lines;
  std::array<char, 256> target{};
  const std::string link = fmt::format("/proc/{}/fd/1", getppid());
  const ssize_t length = readlink(link.c_str(), target.data(), target.size() - 1);
  const std::string name(target.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const bool terminal = name.starts_with("/dev/pts/") || name.starts_with("/dev/tty");
  return terminal ? Liveliness::redraw : Liveliness::lines;
}

}  // namespace annulet::report
