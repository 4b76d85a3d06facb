#pragma once
// Model-FLOPs utilisation (PaLM, Chowdhery et al. 2022, section 4.1): the part of the devices' peak that the model's
// own operations take, recomputed activations not counted; with the hardware's operations in their place it is HFU.
//   MFU = operations per token * tokens per second / (devices * peak)
// And the time of a whole training: T tokens of a model of P parameters on n devices that reach X each, with recomputed
// activations, about 8 T P / (n X) (Narayanan et al. 2021, section 5.1).
#include "annulet/base/units.hpp"

namespace annulet::plan {

using TokenRate = Quantity<struct TokenRateTag, double>;  // tokens (an mlp: samples) per second, over all devices

struct Devices {
  int count = 1;
  FlopRate peak{0};  // of one
};

// Throw ContractError for no devices, or without a peak.
double mfu(Flops per_token, TokenRate rate, const Devices& devices);
double mfu(Flops step, Seconds time, const Devices& devices);  // of all ranks' operations in one step

struct Training {
  Elements parameters = 0, tokens = 0;  // P, T
  int devices = 1;                      // n
  FlopRate reached{0};                  // X
};

Seconds training_time(const Training& training);

}  // namespace annulet::plan
