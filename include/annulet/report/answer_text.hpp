#pragma once
// The answer of a planning command as tables for people, or as JSON and CSV for programs.
#include <string>

#include "annulet/plan/answer.hpp"

namespace annulet::report {

// `explain`: also formula, inputs and result of each figure that says where it comes from.
std::string answer_text(const plan::Answer& answer, bool explain);

// {"KEY of a table": [{"KEY of a column": value, ...}, ...], ..., "notes": [...], "explanations": [...]}; what does not
// exist is null.
std::string answer_json(const plan::Answer& answer);

// Each table with a line of column keys, tables apart by an empty line; what does not exist is empty.
std::string answer_csv(const plan::Answer& answer);

}  // namespace annulet::report
