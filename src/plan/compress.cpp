#include "annulet/plan/compress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "annulet/base/error.hpp"
#include "annulet/cost/closed_form.hpp"
#include "link_text.hpp"

namespace annulet::plan {
namespace {

using schedule::Algorithm;
using schedule::Collective;

constexpr int kMostRanks = 1 << 20;

void refuse_unless(bool fine, std::string what, std::string hint) {
  if (!fine) throw InputError({std::move(what), "there would be nothing to compare", std::move(hint)});
}

void expect_valid(const CompressQuestion& question) {
  refuse_unless(question.elements >= 0, fmt::format("a gradient of {} elements", question.elements), "Give 0 or more");
  refuse_unless(!question.ranks.empty() && !question.densities.empty(), "no ranks or no densities",
                "Name at least one");
  for (const int ranks : question.ranks) refuse_unless(ranks >= 1, fmt::format("{} ranks", ranks), "Give 1 or more");
  for (const double density : question.densities) {
    refuse_unless(density > 0 && density <= 1, fmt::format("a density of {}", density),
                  "Give the part of the values that is sent, as 0.0625, above 0 and up to 1");
  }
  for (const int bits : question.narrow_bits)
    refuse_unless(bits >= 1, fmt::format("{}-bit values", bits), "Give 1 or more");
  refuse_unless(question.dense_bits >= 1 && question.value_bits >= 1 && question.index_bits >= 0,
                fmt::format("dense values of {}, sent values of {} and positions of {} bits", question.dense_bits,
                            question.value_bits, question.index_bits),
                "Give values of 1 or more and positions of 0 or more");
}

Bytes bytes_of(Elements count, int bits) { return Bytes((count * bits + 7) / 8); }

Elements kept(Elements elements, double density) {
  return static_cast<Elements>(std::ceil(static_cast<double>(elements) * density * (1 - 1e-12)));
}

// One way to send a gradient.
struct Way {
  std::string name;
  Bytes payload{0};
  bool sparse = false;
  std::string payload_formula{};

  // By one rank, in the mean.
  double sent(int ranks) const {
    const double others = ranks - 1, bytes = payload.as_double();
    return sparse ? others * bytes : 2 * others / ranks * bytes;
  }

  // The sparse one adds what came from everybody at the end.
  Seconds time(int ranks, const cost::Machine& machine) const {
    const auto links = cost::links_of(machine, ranks);
    if (!sparse) {
      return cost::predicted_time({Collective::all_reduce, Algorithm::ring, payload, ranks}, links).total();
    }
    const auto gather = cost::predicted_time({Collective::all_gather, Algorithm::ring, payload * ranks, ranks}, links);
    return gather.total() + links[gather.link].gamma * (payload * (ranks - 1));
  }
};

Way dense_way(Elements elements, int bits) {
  return {fmt::format("dense, {} bits", bits), bytes_of(elements, bits), false, fmt::format("M = n x {} bits", bits)};
}

Way sparse_way(Elements elements, double density, int value_bits, int index_bits) {
  return {fmt::format("1 in {:.4g}, {} + {} bits", 1 / density, value_bits, index_bits),
          bytes_of(kept(elements, density), value_bits + index_bits), true,
          fmt::format("density x n x ({} + {}) bits", value_bits, index_bits)};
}

std::vector<Way> ways_of(const CompressQuestion& question) {
  std::vector<Way> ways{dense_way(question.elements, question.dense_bits)};
  for (const int bits : question.narrow_bits) {
    if (bits != question.dense_bits) ways.push_back(dense_way(question.elements, bits));
  }
  for (const double density : question.densities) {
    ways.push_back(sparse_way(question.elements, density, question.value_bits, question.index_bits));
  }
  return ways;
}

double ratio(double a, double b) { return b > 0 ? a / b : 1; }

// The first number of ranks for which it is no longer faster than the other; none up to a million. Within a node and
// over nodes the difference changes sign at most once, since dense chunks shrink with every rank.
class TimeBreakEven {
 public:
  TimeBreakEven(Way way, Way dense, const cost::Machine& machine)
      : way_(std::move(way)), dense_(std::move(dense)), machine_(machine) {}

  std::optional<int> ranks() const {
    const int node = std::clamp(machine_.device.ranks_per_node, 1, kMostRanks);
    const auto inside = node >= 2 ? first(2, node) : std::nullopt;
    return inside ? inside : first(std::max(2, node + 1), kMostRanks);
  }

 private:
  bool faster(int ranks) const { return way_.time(ranks, machine_) < dense_.time(ranks, machine_); }

  std::optional<int> first(int low, int high) const {
    if (!faster(low)) return low;
    if (faster(high)) return std::nullopt;
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      (faster(middle) ? low : high) = middle;
    }
    return high;
  }

  Way way_, dense_;
  const cost::Machine& machine_;
};

Cell bytes_cell(double bytes) {
  Cell cell = plan::cell(Bytes(std::llround(bytes)));
  cell.value = bytes;
  return cell;
}

Cell yes_or_no(bool yes) { return {yes, yes ? "yes" : "no"}; }

void explain_way(const CompressQuestion& question, const Way& way, int ranks, std::vector<Explanation>& to) {
  const std::string what = fmt::format("{}, {} ranks, ", way.name, ranks);
  const std::string payload = fmt::format("p = {}, payload = {} B", ranks, way.payload.value());
  const auto links = cost::links_of(question.machine, ranks);
  to.push_back({what + "payload", way.payload_formula, fmt::format("n = {}", question.elements),
                fmt::format("{} B", way.payload.value())});
  to.push_back({what + "sent by a rank", way.sparse ? "(p-1) payload" : "2 (p-1)/p payload", payload,
                fmt::format("{:.10g} B = {}", way.sent(ranks), to_text(Bytes(std::llround(way.sent(ranks)))))});
  std::string inputs = payload;
  for (const cost::Link& link : links) inputs += "; " + link_inputs(link);
  to.push_back({what + "time",
                way.sparse ? "(p-1) (alpha + g + payload (beta + gamma))"
                           : "2 (p-1) (alpha + g) + (p-1)/p payload (2 beta + gamma)",
                links.size() > 1 ? inputs + "; the slower" : inputs, to_text(way.time(ranks, question.machine))});
}

Table ways_table(const CompressQuestion& question, std::vector<Explanation>& to) {
  const std::string of = question.vector_name.empty() ? "" : fmt::format(" ({})", question.vector_name);
  Table table{"compress",
              fmt::format("A gradient of {} values{} on the wire{}", cell(question.elements).shown, of,
                          question.machine_name.empty() ? "" : ", " + question.machine_name),
              {{"ranks", "ranks"},
               {"gradient", "gradient"},
               {"payload", "payload_bytes"},
               {"sent by a rank", "wire_mean_bytes"},
               {"/ dense", "wire_over_dense"},
               {"time", "time_seconds"},
               {"/ dense", "time_over_dense"},
               {"pays", "pays"}},
              {}};
  const auto ways = ways_of(question);
  for (const int ranks : question.ranks) {
    const double sent = ways[0].sent(ranks), time = ways[0].time(ranks, question.machine).count();
    for (const Way& way : ways) {
      const Seconds own = way.time(ranks, question.machine);
      table.rows.push_back({cell(std::int64_t{ranks}), cell(way.name), cell(way.payload), bytes_cell(way.sent(ranks)),
                            number(ratio(way.sent(ranks), sent), 3), cell(own), number(ratio(own.count(), time), 3),
                            &way == ways.data() ? cell() : yes_or_no(own.count() < time)});
      explain_way(question, way, ranks, to);
    }
  }
  return table;
}

// A sparse gradient and the dense one that it is measured against.
struct Comparison {
  Way sparse, dense;
  double break_even;
  std::string formula, inputs;
};

Comparison comparison(Elements elements, double density, int dense_bits, int value_bits, int index_bits) {
  return {sparse_way(elements, density, value_bits, index_bits), dense_way(elements, dense_bits),
          break_even_ranks(density, dense_bits, value_bits, index_bits), "2 dense / (density (value + index))",
          fmt::format("density = {:.6g}, dense = {}, value = {}, index = {} bits", density, dense_bits, value_bits,
                      index_bits)};
}

// A payload of the density's part of M, the positions included.
Comparison all_told(Elements elements, double density, int dense_bits) {
  const Way dense = dense_way(elements, dense_bits);
  const Bytes payload(static_cast<std::int64_t>(std::ceil(dense.payload.as_double() * density * (1 - 1e-12))));
  return {{fmt::format("M / {:.4g}, positions included", 1 / density), payload, true, "density x M"},
          dense,
          2 / density,
          "2 / density",
          fmt::format("density = {:.6g}", density)};
}

std::vector<Comparison> comparisons(const CompressQuestion& q) {
  std::vector<Comparison> all;
  for (const double density : q.densities) {
    all.push_back(comparison(q.elements, density, q.dense_bits, q.value_bits, q.index_bits));
    all.push_back(all_told(q.elements, density, q.dense_bits));
    for (const int bits : q.narrow_bits) {
      if (bits != q.dense_bits) all.push_back(comparison(q.elements, density, bits, bits, q.index_bits));
    }
  }
  return all;
}

Table break_even_table(const CompressQuestion& question, std::vector<Explanation>& to) {
  Table table{"break_even",
              "Ranks from which sparse gradients no longer pay",
              {{"sparse", "sparse"},
               {"against", "dense"},
               {"payload / M", "payload_over_dense"},
               {"equal bytes at ranks", "break_even_ranks"},
               {"slower from ranks", "slower_from_ranks"}},
              {}};
  for (const Comparison& c : comparisons(question)) {
    const auto slower = TimeBreakEven(c.sparse, c.dense, question.machine).ranks();
    table.rows.push_back({cell(c.sparse.name), cell(c.dense.name), number(2 / c.break_even, 4), number(c.break_even, 1),
                          slower ? cell(std::int64_t{*slower}) : cell()});
    const std::string what = fmt::format("{} against {}, ", c.sparse.name, c.dense.name);
    to.push_back({what + "ranks with equal bytes", c.formula, c.inputs, fmt::format("{:.4g}", c.break_even)});
    to.push_back({what + "slower from ranks",
                  "least p with (p-1) (alpha + g + payload (beta + gamma)) >= 2 (p-1) (alpha + g) + (p-1)/p M (2 beta "
                  "+ gamma)",
                  fmt::format("payload = {} B, M = {} B, {}", c.sparse.payload.value(), c.dense.payload.value(),
                              links_text(question.machine, slower.value_or(kMostRanks))),
                  slower ? fmt::format("{}", *slower) : fmt::format("none up to {}", kMostRanks)});
  }
  return table;
}

}  // namespace

double break_even_ranks(double density, int dense_bits, int value_bits, int index_bits) {
  return 2.0 * dense_bits / (density * (value_bits + index_bits));
}

double break_even_ranks(Bytes payload, Bytes dense) { return 2 * (dense / payload); }

std::optional<int> slower_from_ranks(Bytes payload, Bytes dense, const cost::Machine& machine) {
  return TimeBreakEven({"sparse", payload, true}, {"dense", dense}, machine).ranks();
}

Answer plan_compress(const CompressQuestion& question) {
  expect_valid(question);
  Answer answer;
  answer.tables.push_back(ways_table(question, answer.explanations));
  answer.tables.push_back(break_even_table(question, answer.explanations));
  answer.notes = {
      "Dense gradients are added on the way (ring, 2 (p-1)/p M); sparse ones cannot be (all-gather, (p-1) payload)."};
  const int most = *std::ranges::max_element(question.ranks);
  for (std::string& note : link_notes(question.machine, most)) answer.notes.push_back(std::move(note));
  return answer;
}

}  // namespace annulet::plan
