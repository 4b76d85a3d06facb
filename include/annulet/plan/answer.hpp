#pragma once
// What a planning command answers, before it is printed: tables of cells that are a text for people and a value for
// programs, and for each figure that asks for it the formula, its inputs and the result.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "annulet/base/units.hpp"

namespace annulet::plan {

using annulet::to_text;  // of times, which are the standard library's, beside this layer's own

struct Cell {
  std::variant<std::monostate, bool, std::int64_t, double, std::string> value;  // nothing: does not exist here
  std::string shown;
};

Cell cell();                  // "-"
Cell cell(std::string text);  // value and text alike
Cell cell(const char* text);
Cell cell(std::int64_t count);    // with thousands apart: 6,738,149,376
Cell cell(Bytes bytes);           // "23.58 GB"; value in bytes
Cell cell(Seconds time);          // "52.5 ms"; value in seconds
std::string binary(Bytes bytes);  // "4 MiB" where it comes out even, else as to_text
Cell gigabytes(Bytes bytes);      // "23.58", decimal, under a header that names the unit; value in bytes
Cell milliseconds(Seconds time);
Cell percent(double part);  // 0.357 as "35.7 %"; value 0.357
Cell number(double value, int decimals);

struct Column {
  std::string header;  // for people, with the unit: "sent GB"
  std::string key;     // for programs, with the unit: "sent_bytes"
};

struct Table {
  std::string key;    // for programs: "collectives"
  std::string title;  // a line above; may be empty
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string drawing{};  // for people, under it
};

// One figure, traced: "ring all-reduce, time" | "2 (p-1) alpha + 2 (p-1)/p M/B" | "p = 8, alpha = ..." | "52.5 ms".
struct Explanation {
  std::string what, formula, inputs, result;
};

struct Answer {
  std::vector<Table> tables;
  std::vector<std::string> notes;  // lines under the tables
  std::vector<Explanation> explanations{};
  bool holds = true;  // false: something that was to be checked is not so
};

}  // namespace annulet::plan
