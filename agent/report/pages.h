// The agent's pages: tables for people, JSON (schema 1) for programs.
//
// Invariants
//  1. Every JSON document has "schema": 1. Within a schema a field keeps its meaning and unit.
//  2. Tables keep within the given columns; 0: no limit.
#pragma once

#include <string>

#include "agent/node/node_report.h"
#include "protocol/message.h"

namespace spillway::agent {

std::string PageOf(const protocol::Ask& ask, const NodeReport& report);

}  // namespace spillway::agent
