#include "annulet/report/step_drawing.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace annulet::report {
namespace {

constexpr int kNarrowest = 60, kWidest = 200;
constexpr int kLabel = 11, kValue = 13;
constexpr std::size_t kMostBuckets = 16;  // drawn; of more, the first and the last ones

// A step as bars; instants from its beginning.
struct Bars {
  Seconds data{0}, forward{0}, backward{0}, summed{0}, agreed{0}, end{0};  // when each ended
  std::vector<cost::BucketPrediction> buckets;
};

Seconds sum_of(const Bars& bars) {
  Seconds last = bars.end;
  for (const auto& bucket : bars.buckets) last = std::max(last, bucket.end);
  return last;
}

Bars measured(const train::ShownStep& step) {
  const train::StepSeconds& s = step.record.seconds;
  Bars bars;
  bars.data = s.data, bars.forward = bars.data + s.forward, bars.backward = bars.forward + s.backward;
  bars.summed = bars.backward + s.exposed - s.control, bars.agreed = bars.summed + s.control;
  bars.end = s.total;
  for (const auto& bucket : step.buckets)
    bars.buckets.push_back({bucket.bytes, bucket.ready, bucket.start, bucket.end});
  return bars;
}

// Without a profile: what was measured, but for the buckets, which are simulated from the instants of their launches.
Bars simulated(const train::ShownStep& step) {
  Bars bars = measured(step);
  const Seconds before = bars.summed;
  bars.summed = bars.backward;
  for (std::size_t b = 0; b < bars.buckets.size(); ++b) {
    bars.buckets[b].end = bars.buckets[b].start + step.buckets[b].predicted;
    bars.summed = std::max(bars.summed, bars.buckets[b].end);
  }
  const Seconds earlier = before - bars.summed;
  bars.agreed -= earlier, bars.end -= earlier;
  return bars;
}

Bars predicted(const train::ShownStep& step) {
  if (!step.prediction) return simulated(step);
  const cost::StepPrediction& p = *step.prediction;
  Bars bars;
  bars.forward = p.backward_begins, bars.backward = p.backward_ends;
  bars.summed = bars.backward + p.exposed, bars.agreed = bars.summed + p.control;
  bars.end = p.step;
  bars.buckets = p.buckets;
  return bars;
}

// Lines of one drawing: LABEL, bars on a common scale, VALUE.
class Canvas {
 public:
  Canvas(Seconds span, const DrawingOptions& options)
      : span_(std::max(span, Seconds(1e-9))),
        columns_(std::clamp(options.width, kNarrowest, kWidest) - kLabel - kValue),
        colour_(options.colour) {}

  struct Piece {
    Seconds begin, end;
    char symbol;
    int colour;  // of ANSI
  };

  // A later piece covers an earlier one; what takes any time is seen.
  void line(const std::string& label, const std::vector<Piece>& pieces, Seconds value) {
    std::string cells(static_cast<std::size_t>(columns_), ' ');
    std::vector<int> colours(cells.size(), 0);
    for (const Piece& piece : pieces) {
      if (piece.end <= piece.begin) continue;
      const std::size_t first = column(piece.begin), last = std::max(first + 1, column(piece.end));
      for (std::size_t c = first; c < std::min(last, cells.size()); ++c) {
        cells[c] = piece.symbol, colours[c] = piece.colour;
      }
    }
    text_ += fmt::format("{:<{}}{}{:>9.3f} ms\n", label, kLabel, painted(cells, colours), value.count() * 1e3);
  }

  // Numbers above ticks, about one in ten columns.
  void axis() {
    std::string numbers(static_cast<std::size_t>(columns_ + kValue), ' ');
    std::string ticks(static_cast<std::size_t>(columns_), '-');
    const double unit = tick(span_.count() * 1e3);
    for (double at = 0; at <= span_.count() * 1e3; at += unit) {
      const std::size_t place = column(Seconds(at / 1e3));
      const std::string number = fmt::format("{:g}", at);
      if (place >= ticks.size() || place + number.size() > numbers.size()) break;
      ticks[place] = '+';
      numbers.replace(place, number.size(), number);
    }
    numbers.erase(numbers.find_last_not_of(' ') + 1);
    text_ += fmt::format("{:<{}}{}\n{:<{}}{}\n", "ms", kLabel, numbers, "", kLabel, ticks);
  }

  void heading(const std::string& text) { text_ += text + '\n'; }
  std::string text() && { return std::move(text_); }

 private:
  std::size_t column(Seconds at) const {
    return static_cast<std::size_t>(std::max(0.0, std::floor(columns_ * (at / span_) + 1e-9)));
  }

  // 1, 2 or 5 times a power of ten.
  double tick(double milliseconds) const {
    const double least = 10 * milliseconds / columns_, power = std::pow(10, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= least) return factor * power;
    }
    return 10 * power;
  }

  std::string painted(const std::string& cells, const std::vector<int>& colours) const {
    if (colour_ == Colour::none) return cells;
    std::string text;
    int now = 0;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (colours[c] != now) text += colours[c] == 0 ? "\x1b[0m" : fmt::format("\x1b[{}m", colours[c]);
      now = colours[c];
      text += cells[c];
    }
    return now == 0 ? text : text + "\x1b[0m";
  }

  Seconds span_;
  int columns_;
  Colour colour_;
  std::string text_;
};

constexpr int kGreen = 32, kYellow = 33, kBlue = 34, kRed = 31, kGrey = 90;

void draw_buckets(Canvas& canvas, const std::vector<cost::BucketPrediction>& buckets) {
  const std::size_t left_out = buckets.size() > kMostBuckets ? buckets.size() - kMostBuckets : 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (left_out > 0 && b == kMostBuckets / 2) {
      canvas.heading(fmt::format("  ... {} more buckets ...", left_out));
      b += left_out;
    }
    const auto& bucket = buckets[b];
    canvas.line(fmt::format("bucket {}", b + 1),
                {{bucket.ready, bucket.start, '.', kGrey}, {bucket.start, bucket.end, '=', kBlue}},
                bucket.end - bucket.start);
  }
}

void draw(Canvas& canvas, const Bars& bars) {
  canvas.line("forward", {{Seconds(0), bars.data, '.', kGrey}, {bars.data, bars.forward, '#', kGreen}},
              bars.forward - bars.data);
  canvas.line("backward", {{bars.forward, bars.backward, '#', kGreen}}, bars.backward - bars.forward);
  draw_buckets(canvas, bars.buckets);
  canvas.line("exposed", {{bars.backward, bars.summed, 'x', kRed}, {bars.summed, bars.agreed, 'c', kRed}},
              bars.agreed - bars.backward);
  canvas.line("optimiser", {{bars.agreed, bars.end, '#', kYellow}}, bars.end - bars.agreed);
}

int columns_of(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

std::string draw_step(const train::ShownStep& step, const DrawingOptions& options) {
  const Bars real = measured(step), foreseen = predicted(step);
  Canvas canvas(std::max(sum_of(real), sum_of(foreseen)), options);
  canvas.heading(fmt::format("\nStep {} on rank 0, measured: {:.3f} ms", step.record.step, real.end.count() * 1e3));
  canvas.axis();
  draw(canvas, real);
  canvas.heading(fmt::format("predicted {}: {:.3f} ms, measured {:+.1f} %",
                             step.prediction ? "from the profile" : "from its launches", foreseen.end.count() * 1e3,
                             100 * (real.end / foreseen.end - 1)));
  draw(canvas, foreseen);
  canvas.heading(". data, or ready and not begun   = all-reduce   x waiting for it   c control");
  return std::move(canvas).text();
}

int terminal_width() {
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr && std::atoi(columns) > 0) {
    return std::atoi(columns);
  }
  if (const int columns = columns_of(STDOUT_FILENO); columns > 0) return columns;
  const int launcher = open(fmt::format("/proc/{}/fd/1", getppid()).c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  const int columns = launcher >= 0 ? columns_of(launcher) : 0;
  if (launcher >= 0) close(launcher);
  return columns > 0 ? columns : 80;
}

}  // namespace annulet::report
