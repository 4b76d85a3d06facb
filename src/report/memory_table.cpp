#include "annulet/report/memory_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace annulet::report {
namespace {

std::string row(std::string_view name, Bytes counted, Bytes planned) {
  return fmt::format("  {:<18} {:>10} {:>10}\n", name, to_text(counted), to_text(planned));
}

Bytes most(const std::vector<Bytes>& of_ranks) { return *std::ranges::max_element(of_ranks); }

// Of each rank.
std::vector<Bytes> states(const train::Summary& summary, std::vector<Bytes> train::MemoryRecord::*column) {
  std::vector<Bytes> sums((summary.memory.front().*column).size());
  for (const train::MemoryRecord& record : summary.memory) {
    for (std::size_t r = 0; record.state && r < sums.size(); ++r) sums[r] += (record.*column)[r];
  }
  return sums;
}

}  // namespace

std::string memory_table(const train::Summary& summary) {
  if (summary.memory.empty()) return "";
  using train::MemoryRecord;
  std::string text = fmt::format("\n{:<20} {:>10} {:>10}\n", summary.ranks > 1 ? "memory, largest rank" : "memory",
                                 "counted", "planned");
  const auto add = [&](bool states) {
    for (const MemoryRecord& record : summary.memory) {
      if (record.state == states) text += row(record.name, most(record.counted), most(record.planned));
    }
  };
  add(true);
  text += row("= model states", most(states(summary, &MemoryRecord::counted)),
              most(states(summary, &MemoryRecord::planned)));
  add(false);
  return text + fmt::format("  largest process, with data and program: {}\n", to_text(summary.peak_rss));
}

}  // namespace annulet::report
