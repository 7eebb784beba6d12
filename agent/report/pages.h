// What the agent shows: tables for people, JSON (schema 1) for programs.
//
// Pure: a report in, text out. Any thread.
//
// Invariants
//  1. Every JSON document has "schema": 1 at its top; a field never changes its meaning or unit
//  within a schema.
//  2. Tables keep within the given columns, 0 meaning any number.
#pragma once

#include <string>

#include "agent/node/node_report.h"
#include "protocol/message.h"

namespace spillway::agent {

std::string PageOf(const protocol::Ask& ask, const NodeReport& report);

}  // namespace spillway::agent
