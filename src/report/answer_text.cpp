#include "annulet/report/answer_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace annulet::report {
namespace {

using Json = nlohmann::ordered_json;
using plan::Cell;
using plan::Table;

// Characters as a terminal counts them: the bytes that begin one.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

bool is_text(const Cell& cell) { return std::holds_alternative<std::string>(cell.value); }

// Texts stand at the left, all else at the right; a column is a column of texts if its first value is one.
bool is_text_column(const Table& table, std::size_t column) {
  for (const auto& row : table.rows) {
    if (!std::holds_alternative<std::monostate>(row[column].value)) return is_text(row[column]);
  }
  return false;
}

std::string padded(std::string_view text, std::size_t to, bool left) {
  const std::string space(to - std::min(to, width(text)), ' ');
  return left ? std::string(text) + space : space + std::string(text);
}

std::string table_text(const Table& table) {
  std::vector<std::size_t> widths;
  std::vector<bool> left;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    widths.push_back(width(table.columns[c].header)), left.push_back(is_text_column(table, c));
    for (const auto& row : table.rows) widths[c] = std::max(widths[c], width(row[c].shown));
  }
  const auto line = [&](auto text_of) {
    std::string text;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      text += (c > 0 ? "  " : "") + padded(text_of(c), widths[c], left[c]);
    }
    return text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
  };
  std::string text = table.title.empty() ? "" : table.title + '\n';
  if (!table.columns.empty()) text += line([&](std::size_t c) { return table.columns[c].header; });
  for (const auto& row : table.rows) text += line([&](std::size_t c) { return row[c].shown; });
  return text + table.drawing;
}

Json to_json(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return nullptr;
        } else {
          return value;
        }
      },
      cell.value);
}

std::string to_csv(const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell.value)) return {};
  if (!is_text(cell)) return to_json(cell).dump();
  const std::string& text = std::get<std::string>(cell.value);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string answer_text(const plan::Answer& answer, bool explain) {
  std::string text;
  for (const Table& table : answer.tables) text += (text.empty() ? "" : "\n") + table_text(table);
  if (!answer.notes.empty() && !text.empty()) text += '\n';
  for (const std::string& note : answer.notes) text += note + '\n';
  if (!explain) return text;
  for (const plan::Explanation& e : answer.explanations) {
    text += fmt::format("\n{}\n  formula  {}\n  inputs   {}\n  result   {}\n", e.what, e.formula, e.inputs, e.result);
  }
  return text;
}

std::string answer_json(const plan::Answer& answer) {
  Json json = Json::object();
  for (const Table& table : answer.tables) {
    Json rows = Json::array();
    for (const auto& row : table.rows) {
      Json object = Json::object();
      for (std::size_t c = 0; c < row.size(); ++c) object[table.columns[c].key] = to_json(row[c]);
      rows.push_back(std::move(object));
    }
    json[table.key] = std::move(rows);
  }
  json["notes"] = answer.notes;
  json["explanations"] = Json::array();
  for (const plan::Explanation& e : answer.explanations) {
    json["explanations"].push_back(
        {{"what", e.what}, {"formula", e.formula}, {"inputs", e.inputs}, {"result", e.result}});
  }
  return json.dump(2) + '\n';
}

std::string answer_csv(const plan::Answer& answer) {
  std::string text;
  for (const Table& table : answer.tables) {
    if (!text.empty()) text += '\n';
    for (std::size_t c = 0; c < table.columns.size(); ++c) text += (c > 0 ? "," : "") + table.columns[c].key;
    text += '\n';
    for (const auto& row : table.rows) {
      for (std::size_t c = 0; c < row.size(); ++c) text += (c > 0 ? "," : "") + to_csv(row[c]);
      text += '\n';
    }
  }
  return text;
}

}  // namespace annulet::report
