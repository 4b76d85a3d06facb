#include "annulet/plan/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "annulet/base/error.hpp"
#include "annulet/cost/closed_form_text.hpp"
#include "annulet/cost/crossover.hpp"
#include "link_text.hpp"

namespace annulet::plan {
namespace {

using schedule::Algorithm;
using schedule::Collective;

std::string spoken(std::string_view name, char between) {
  std::string text(name);
  std::ranges::replace(text, '_', between);
  return text;
}

std::string name_of(Collective collective) { return spoken(to_text(collective), '-'); }  // "all-reduce"
std::string name_of(Algorithm algorithm) { return spoken(to_text(algorithm), ' '); }

void expect_valid(const CollectivesQuestion& question) {
  if (question.ranks < 1) {
    throw InputError(
        {fmt::format("{} ranks", question.ranks), "a collective has at least one", "Give ranks = 1 or more"});
  }
  if (question.bytes < Bytes(0) || question.element < Bytes(1)) {
    throw InputError(
        {fmt::format("a vector of {} with elements of {}", to_text(question.bytes), to_text(question.element)),
         "neither may be negative, nor an element empty", "Give bytes = 0 or more"});
  }
  if (question.bytes.value() % question.element.value() != 0) {
    throw InputError({fmt::format("{} bytes are no whole number of elements of {}", question.bytes.value(),
                                  to_text(question.element)),
                      "chunks are cut between elements", "Give a multiple of the element's size"});
  }
}

// One algorithm of one collective: a row of the table and where its numbers come from.
struct Row {
  cost::CollectiveShape shape;
  std::string name;
  cost::PredictedTime time;
  cost::WireBytes wire;
  bool charged = false;  // the tree as a closed form

  double over_least() const {
    const double least = cost::least_wire_bytes(shape.collective, shape.bytes, shape.ranks);
    return least > 0 ? wire.largest.as_double() / least : 1;
  }
  std::string title() const { return fmt::format("{} by {}", name_of(shape.collective), name); }
};

Row row_of(const cost::CollectiveShape& shape, std::span<const cost::Link> links) {
  return {shape, name_of(shape.algorithm), cost::predicted_time(shape, links), cost::wire_bytes(shape)};
}

std::vector<Row> rows_of(const CollectivesQuestion& question, std::span<const cost::Link> links) {
  std::vector<Row> rows;
  for (const Collective collective : schedule::collectives()) {
    for (const Algorithm algorithm : schedule::algorithms_of(collective)) {
      Row row = row_of({collective, algorithm, question.bytes, question.ranks, question.element}, links);
      if (collective == Collective::all_reduce && algorithm == Algorithm::binomial_tree) {
        Row charged = row;
        charged.name = "tree, closed form", charged.wire = cost::charged_tree_bytes(row.shape), charged.charged = true;
        rows.push_back(charged);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Cell mean_cell(const cost::WireBytes& wire) {
  Cell cell = plan::cell(Bytes(std::llround(wire.mean())));
  cell.value = wire.mean();
  return cell;
}

Table rows_table(const std::vector<Row>& rows, std::string title) {
  Table table{"collectives",
              std::move(title),
              {{"collective", "collective"},
               {"algorithm", "algorithm"},
               {"steps", "steps"},
               {"time", "time_seconds"},
               {"latency", "latency_seconds"},
               {"bandwidth", "bandwidth_seconds"},
               {"adding", "reduction_seconds"},
               {"payload", "payload_bytes"},
               {"sent: least", "wire_least_bytes"},
               {"mean", "wire_mean_bytes"},
               {"largest", "wire_largest_bytes"},
               {"/ least possible", "wire_over_least"}},
              {}};
  for (const Row& row : rows) {
    table.rows.push_back({cell(name_of(row.shape.collective)), cell(row.name), cell(std::int64_t{row.time.steps}),
                          cell(row.time.total()), cell(row.time.latency), cell(row.time.bandwidth),
                          cell(row.time.reduction), cell(row.wire.payload), cell(row.wire.least), mean_cell(row.wire),
                          cell(row.wire.largest), number(row.over_least(), 3)});
  }
  return table;
}

std::string shape_inputs(const cost::CollectiveShape& shape) {
  return fmt::format("p = {}, M = {} B", shape.ranks, shape.bytes.value());
}

std::string bytes_text(Bytes bytes) { return fmt::format("{} B = {}", bytes.value(), to_text(bytes)); }

void explain_time(const Row& row, const cost::ClosedFormText& text, const cost::Link& link,
                  std::vector<Explanation>& to) {
  const std::string inputs = shape_inputs(row.shape) + ", " + link_inputs(link);
  const auto add = [&](const char* what, std::string_view formula, std::string result) {
    to.push_back({row.title() + ", " + what, std::string(formula), inputs, std::move(result)});
  };
  add("steps", text.steps, fmt::format("{}", row.time.steps));
  add("latency", text.latency, to_text(row.time.latency));
  add("bandwidth", text.bandwidth, to_text(row.time.bandwidth));
  add("adding", text.reduction, to_text(row.time.reduction));
  add("time", "latency + bandwidth + adding", to_text(row.time.total()));
}

void explain_bytes(const Row& row, const cost::ClosedFormText& text, std::vector<Explanation>& to) {
  const std::string inputs = shape_inputs(row.shape);
  const auto add = [&](const char* what, std::string_view formula, std::string result) {
    to.push_back({row.title() + ", " + what, std::string(formula), inputs, std::move(result)});
  };
  const std::string_view charged = "ceil(log2 p) sends down and up, every rank charged alike: 2 M in all";
  add("payload", cost::payload_text(row.shape.collective), bytes_text(row.wire.payload));
  add("sent by the rank that sends least", row.charged ? charged : text.least, bytes_text(row.wire.least));
  add("sent in the mean", row.charged ? charged : text.mean, fmt::format("{:.10g} B", row.wire.mean()));
  add("sent by the rank that sends most", row.charged ? charged : text.largest, bytes_text(row.wire.largest));
  add("sent / least possible", fmt::format("largest / ({})", cost::least_wire_text(row.shape.collective)),
      fmt::format("{:.3f}", row.over_least()));
}

void explain(const Row& row, std::span<const cost::Link> links, std::vector<Explanation>& to) {
  const auto& text = cost::closed_form_text(row.shape.collective, row.shape.algorithm, row.shape.ranks);
  explain_time(row, text, links[row.time.link], to);
  explain_bytes(row, text, to);
}

std::string sum_text(const cost::ClosedFormText& text) {
  return fmt::format("{} + {} + {}", text.latency, text.bandwidth, text.reduction);
}

void add_crossovers(Collective collective, int ranks, std::span<const cost::Link> links, Table& table,
                    std::vector<Explanation>& to) {
  for (const cost::Crossover& at : cost::crossovers(collective, ranks, links)) {
    const std::string below = name_of(at.below), above = name_of(at.above);
    table.rows.push_back(
        {cell(name_of(collective)), cell(below), cell(above), cell(at.size.value()), cell(at.size), cell(at.time)});
    std::string inputs = fmt::format("p = {}", ranks);
    for (const cost::Link& link : links) inputs += ", " + link_inputs(link);
    to.push_back({fmt::format("{}, size from which {} is faster than {}", name_of(collective), above, below),
                  fmt::format("least M with {} >= {}", sum_text(cost::closed_form_text(collective, at.below, ranks)),
                              sum_text(cost::closed_form_text(collective, at.above, ranks))),
                  inputs, bytes_text(at.size)});
  }
}

Table crossovers_table(int ranks, std::span<const cost::Link> links, std::vector<Explanation>& to) {
  Table table{"crossovers",
              fmt::format("Sizes at which an algorithm overtakes another, {} rank{}", ranks, ranks == 1 ? "" : "s"),
              {{"collective", "collective"},
               {"faster below", "below"},
               {"faster above", "above"},
               {"bytes", "size_bytes"},
               {"", "size"},
               {"both take", "time_seconds"}},
              {}};
  for (const Collective collective : schedule::collectives()) add_crossovers(collective, ranks, links, table, to);
  return table;
}

std::string title_of(const CollectivesQuestion& question) {
  const std::string of = question.vector_name.empty() ? "" : fmt::format(" ({})", question.vector_name);
  const std::string on = question.machine_name.empty() ? "" : question.machine_name + ", ";
  return fmt::format("Collectives of {}{}, {} rank{}, {}{}", to_text(question.bytes), of, question.ranks,
                     question.ranks == 1 ? "" : "s", on, links_text(question.machine, question.ranks));
}

std::vector<std::string> notes_of(const CollectivesQuestion& question) {
  const double least = cost::least_wire_bytes(Collective::all_reduce, question.bytes, question.ranks);
  std::vector<std::string> notes{
      fmt::format("No all-reduce can do with less than 2 (p-1)/p M = {} sent by each rank (Patarasuk & Yuan 2009).",
                  to_text(Bytes(std::llround(least)))),
      "The tree's closed form charges every rank alike; in the binomial tree the root sends most and a leaf once.",
      "Pipelined trees and chains send p segments here; the tree's time is a bound, which the simulation stays below.",
      "Direct sends p-1 messages at once: the model knows no port at the receiver, where they meet in fact."};
  for (std::string& note : link_notes(question.machine, question.ranks)) notes.push_back(std::move(note));
  return notes;
}

}  // namespace

Answer plan_collectives(const CollectivesQuestion& question) {
  expect_valid(question);
  const auto links = cost::links_of(question.machine, question.ranks);
  const auto rows = rows_of(question, links);
  Answer answer;
  answer.tables.push_back(rows_table(rows, title_of(question)));
  for (const Row& row : rows) explain(row, links, answer.explanations);
  answer.tables.push_back(crossovers_table(question.ranks, links, answer.explanations));
  answer.notes = notes_of(question);
  return answer;
}

}  // namespace annulet::plan
