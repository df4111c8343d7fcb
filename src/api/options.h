// Options objects as the other API files read them.
#ifndef PROOFINFER_API_OPTIONS_H
#define PROOFINFER_API_OPTIONS_H

#include "api/boundary.h"
#include "model/settings.h"

namespace proofinfer {

// The settings in an options handle; NULL: the defaults. False: `call` has the failure.
bool read_settings(Call *call, const proofinfer_options *options, Settings *settings);

}  // namespace proofinfer

#endif
