#pragma once
// Finding cells in answers, by the keys that programs use.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>

#include "annulet/cost/machine.hpp"
#include "annulet/plan/answer.hpp"

namespace annulet::plan {

inline const Table& table_of(const Answer& answer, const std::string& key) {
  const auto found = std::ranges::find(answer.tables, key, &Table::key);
  if (found == answer.tables.end()) throw std::out_of_range("no table " + key);
  return *found;
}

// The first row whose cells show `wanted`, one after the other from the first column on; its cell of `column`.
inline const Cell& cell_of(const Table& table, const std::vector<std::string>& wanted, const std::string& column) {
  const auto at = std::ranges::find(table.columns, column, &Column::key) - table.columns.begin();
  for (const auto& row : table.rows) {
    const bool fits = std::equal(wanted.begin(), wanted.end(), row.begin(),
                                 [](const std::string& text, const Cell& cell) { return cell.shown == text; });
    if (fits) return row.at(static_cast<std::size_t>(at));
  }
  throw std::out_of_range("no row " + wanted.front());
}

inline double value_of(const Cell& cell) {
  if (const auto* count = std::get_if<std::int64_t>(&cell.value)) return static_cast<double>(*count);
  return std::get<double>(cell.value);
}

inline cost::Machine machine_named(const std::string& name) {
  return cost::read_machine_file(ANNULET_SOURCE "/configs/machines/" + name + ".toml");
}

}  // namespace annulet::plan
