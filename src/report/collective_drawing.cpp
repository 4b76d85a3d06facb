#include "annulet/report/collective_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace annulet::report {
namespace {

using schedule::Contributions;
using schedule::Interval;

constexpr std::size_t kRowLabel = 8;  // "rank 12 "
constexpr int kNarrowestDrawing = 40;
constexpr Elements kMostNumbers = 16;         // of a piece that are shown
constexpr std::size_t kMostMessageLines = 6;  // of a round
constexpr const char* kOrange = "\x1b[38;5;208m";
constexpr const char* kFinishedGreen = "\x1b[32m";
constexpr const char* kPlainAgain = "\x1b[0m";

std::string number_text(double value) {
  const bool whole = std::abs(value) < 1e6 && value == std::floor(value);
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

// "0.2.": who is in, of `ranks`.
std::string mask_text(Contributions held, int ranks) {
  std::string text;
  for (int r = 0; r < ranks; ++r) text += ((held >> r) & 1U) != 0 ? fmt::format("{:x}", r) : ".";
  return text;
}

std::string range_text(Bytes least, Bytes most) {
  return least == most ? to_text(least) : fmt::format("{} to {}", to_text(least), to_text(most));
}

}  // namespace

// How pieces are shown: contributions as `mask`, `part` of all or `count`, or so many `values`.
struct CollectiveDrawing::Layout {
  enum class Form { mask, part, count, values };
  Form form;
  Elements numbers;           // values of a piece at most
  std::size_t cell;           // columns of a cell, with its mark and the blank before it
  std::size_t cells_in_line;  // more pieces go into further blocks of lines
};

CollectiveDrawing::CollectiveDrawing(Replay replay, ReplayValues values)
    : replay_(std::move(replay)), values_(std::move(values)) {
  for (const auto& ranks : values_) {
    for (const auto& held : ranks) {
      for (const Interval piece : replay_.pieces) {
        for (Elements e = piece.first; e < piece.first + std::min(piece.count, kMostNumbers); ++e)
          number_width_ = std::max(number_width_, number_text(held[static_cast<std::size_t>(e)]).size());
      }
    }
  }
}

CollectiveDrawing::Layout CollectiveDrawing::layout(int width) const {
  using Form = Layout::Form;
  const auto columns = static_cast<std::size_t>(std::max(width, kNarrowestDrawing)) - kRowLabel;
  const auto digits = fmt::formatted_size("{}", replay_.ranks());
  std::size_t heading = 1;
  Elements longest = 0;
  for (std::size_t p = 0; p < replay_.pieces.size(); ++p) {
    heading = std::max(heading, header(p).size());
    longest = std::max(longest, replay_.pieces[p].count);
  }
  const auto laid_out = [&](Form form, std::size_t text, Elements numbers) {
    const std::size_t cell = std::max(heading, text) + 2;
    return Layout{form, numbers, cell, std::max<std::size_t>(1, columns / cell)};
  };
  std::vector<Layout> choices;  // widest first
  if (values_.empty()) {
    choices.push_back(laid_out(Form::mask, static_cast<std::size_t>(replay_.ranks()), 0));
    choices.push_back(laid_out(Form::part, 2 * digits + 1, 0));
    choices.push_back(laid_out(Form::count, digits, 0));
  }
  for (Elements m = std::min(longest, kMostNumbers); !values_.empty() && m >= 1; --m) {
    const auto all = static_cast<std::size_t>(m);
    choices.push_back(laid_out(Form::values, all * (number_width_ + 1) - 1 + (m < longest ? 3 : 0), m));
  }
  if (choices.empty()) choices.push_back(laid_out(Form::values, 1, 1));
  const auto fits = [&](const Layout& choice) { return choice.cells_in_line >= replay_.pieces.size(); };
  const auto found = std::ranges::find_if(choices, fits);
  return found != choices.end() ? *found : choices.back();
}

std::string CollectiveDrawing::header(std::size_t piece) const {
  const Interval i = replay_.pieces[piece];
  if (replay_.chunked) return fmt::format("{}", piece);
  return i.count == 1 ? fmt::format("{}", i.first) : fmt::format("{}-{}", i.first, i.end() - 1);
}

std::string CollectiveDrawing::numbers(int round, int rank, std::size_t piece, const Layout& layout) const {
  const auto& held = values_[static_cast<std::size_t>(round)][static_cast<std::size_t>(rank)];
  const Interval i = replay_.pieces[piece];
  std::string text;
  for (Elements e = i.first; e < i.first + std::min(i.count, layout.numbers); ++e)
    text +=
        fmt::format("{}{:<{}}", text.empty() ? "" : " ", number_text(held[static_cast<std::size_t>(e)]), number_width_);
  return i.count > layout.numbers ? text + " .." : text;
}

std::string CollectiveDrawing::text(int round, int rank, std::size_t piece, const Layout& layout) const {
  const HeldPiece& held = replay_.frames[static_cast<std::size_t>(round)].held[static_cast<std::size_t>(rank)][piece];
  if (held.ranks == 0) return "-";
  switch (layout.form) {
    case Layout::Form::mask:
      return mask_text(held.ranks, replay_.ranks());
    case Layout::Form::part:
      return fmt::format("{}/{}", std::popcount(held.ranks), replay_.ranks());
    case Layout::Form::count:
      return fmt::format("{}", std::popcount(held.ranks));
    case Layout::Form::values:
      return numbers(round, rank, piece, layout);
  }
  return {};
}

std::string CollectiveDrawing::cell(int round, int rank, std::size_t piece, const Layout& layout, Colour colour) const {
  const HeldPiece& held = replay_.frames[static_cast<std::size_t>(round)].held[static_cast<std::size_t>(rank)][piece];
  const std::string shown = text(round, rank, piece, layout);
  const std::string padding(layout.cell - 2 - shown.size(), ' ');
  const char mark = held.received && held.finished ? '*' : held.received ? '>' : held.finished ? '=' : ' ';
  if (colour == Colour::none || mark == ' ') return fmt::format(" {}{}{}", mark, shown, padding);
  return fmt::format(" {}{}{}{}{}{}", held.received ? kOrange : kFinishedGreen, mark,
                     held.finished ? kFinishedGreen : "", shown, kPlainAgain, padding);
}

std::string CollectiveDrawing::name(Interval elements) const {
  if (!replay_.chunked) {
    return elements.count == 1 ? fmt::format("element {}", elements.first)
                               : fmt::format("elements {}-{}", elements.first, elements.end() - 1);
  }
  std::size_t first = replay_.pieces.size(), last = 0, all = 0;
  for (std::size_t p = 0; p < replay_.pieces.size(); ++p) {
    if (replay_.pieces[p].count == 0) continue;
    ++all;
    if (!elements.overlaps(replay_.pieces[p])) continue;
    first = std::min(first, p), last = p, --all;
  }
  if (first == last) return fmt::format("chunk {}", first);
  return all == 0 ? "all" : fmt::format("chunks {}-{}", first, last);
}

std::string CollectiveDrawing::messages(int round, int width) const {
  const auto& sent = replay_.frames[static_cast<std::size_t>(round)].messages;
  if (sent.empty()) return {};
  const auto by_count = [](const ReplayMessage& a, const ReplayMessage& b) {
    return a.elements.count < b.elements.count;
  };
  const auto [least, most] = std::ranges::minmax_element(sent, by_count);
  std::string line = "sent  ";
  for (std::size_t m = 0; m < sent.size(); ++m)
    line += fmt::format("{}{}->{}: {}", m == 0 ? "" : ", ", sent[m].from, sent[m].to, name(sent[m].elements));
  const std::string sizes =
      fmt::format("; {}{}", range_text(replay_.element * least->elements.count, replay_.element * most->elements.count),
                  sent.size() > 1 ? " each" : "");
  std::string lines = wrap_words(line + sizes, width, 6);
  if (static_cast<std::size_t>(std::ranges::count(lines, '\n')) <= kMostMessageLines) return lines;
  std::size_t end = 0;
  for (std::size_t l = 0; l + 1 < kMostMessageLines; ++l) end = lines.find('\n', end) + 1;
  return lines.substr(0, end) + wrap_words(fmt::format("      ... {} messages in all{}", sent.size(), sizes), width, 6);
}

std::string CollectiveDrawing::round(int round, const DrawingOptions& options) const {
  const int width = std::max(options.width, kNarrowestDrawing);
  const ReplayFrame& frame = replay_.frames[static_cast<std::size_t>(round)];
  const auto [least, most] = std::ranges::minmax(frame.sent);
  std::string lines =
      wrap_words(fmt::format("step {} of {}  so far {} sent, {} by a rank; {} predicted", round, replay_.rounds(),
                             to_text(replay_.sent(round)), range_text(least, most), to_text(frame.time)),
                 width, 0);
  lines += messages(round, width);
  const Layout layout = this->layout(width);
  for (std::size_t first = 0; first < replay_.pieces.size(); first += layout.cells_in_line) {
    const std::size_t end = std::min(first + layout.cells_in_line, replay_.pieces.size());
    std::string row = fmt::format("{:<{}}", replay_.chunked ? "chunk" : "element", kRowLabel);
    const auto finish_row = [&] { lines += row.substr(0, row.find_last_not_of(' ') + 1) + '\n'; };
    for (std::size_t p = first; p < end; ++p) row += fmt::format("  {:<{}}", header(p), layout.cell - 2);
    finish_row();
    for (int r = 0; r < replay_.ranks(); ++r) {
      row = fmt::format("{:<{}}", fmt::format("rank {}", r), kRowLabel);
      for (std::size_t p = first; p < end; ++p) row += cell(round, r, p, layout, options.colour);
      finish_row();
    }
  }
  return lines;
}

std::string CollectiveDrawing::legend(const DrawingOptions& options) const {
  const int width = std::max(options.width, kNarrowestDrawing);
  std::string what = "values: as they were in the buffers";
  const Layout::Form form = layout(width).form;
  if (form == Layout::Form::mask) what = "held: the ranks that have contributed";
  if (form == Layout::Form::part || form == Layout::Form::count) what = "held: how many ranks have contributed";
  const auto painted = [&](const char* colour, const char* text) {
    return options.colour == Colour::none ? std::string(text) : fmt::format("{}{}{}", colour, text, kPlainAgain);
  };
  // Broken before it is painted, since colours take no columns.
  std::string lines = wrap_words(what + "; > just received  = finished  * both", width, 0);
  for (const auto& [colour, text] : {std::pair{kOrange, "> just"}, {kFinishedGreen, "= finished"}}) {
    const std::size_t at = lines.find(text);
    if (at != std::string::npos) lines.replace(at, std::string_view(text).size(), painted(colour, text));
  }
  return lines;
}

std::string wrap_words(const std::string& line, int width, int indent) {
  const auto most = static_cast<std::size_t>(width);
  std::string lines;
  std::size_t begin = 0, room = most;
  while (line.size() - begin > room) {
    std::size_t end = line.rfind(' ', begin + room);
    if (end == std::string::npos || end <= begin) end = begin + room;
    lines += line.substr(begin, end - begin) + '\n' + std::string(static_cast<std::size_t>(indent), ' ');
    begin = line.find_first_not_of(' ', end);
    if (begin == std::string::npos) begin = line.size();
    room = most - static_cast<std::size_t>(indent);
  }
  return lines + line.substr(begin) + '\n';
}

}  // namespace annulet::report
