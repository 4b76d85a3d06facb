#include <iostream>

#include "annulet/base/units.hpp"

int main() {
  const annulet::Bytes gradient = annulet::parse_bytes("4MiB");
  const annulet::Seconds time = gradient / annulet::parse_rate("125MB/s");
  std::cout << annulet::to_text(gradient) << " take " << annulet::to_text(time) << '\n';
  return time > annulet::Seconds(0.03) && time < annulet::Seconds(0.04) ? 0 : 1;
}
